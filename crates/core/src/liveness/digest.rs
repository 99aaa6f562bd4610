//! SipHash-2-4 with an answer of 128 bits (Aumasson and Bernstein): a keyed hash of short texts.

/// The rounds' state.
struct Sip([u64; 4]);

impl Sip {
    const fn rounds(&mut self, count: u32) {
        let [mut a, mut b, mut c, mut d] = self.0;
        let mut done = 0;
        while done < count {
            a = a.wrapping_add(b);
            b = b.rotate_left(13) ^ a;
            a = a.rotate_left(32);
            c = c.wrapping_add(d);
            d = d.rotate_left(16) ^ c;
            a = a.wrapping_add(d);
            d = d.rotate_left(21) ^ a;
            c = c.wrapping_add(b);
            b = b.rotate_left(17) ^ c;
            c = c.rotate_left(32);
            done += 1;
        }
        self.0 = [a, b, c, d];
    }

    const fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.rounds(2);
        self.0[0] ^= word;
    }

    const fn fold(&self) -> u64 {
        self.0[0] ^ self.0[1] ^ self.0[2] ^ self.0[3]
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The hash of a text of at most 255 bytes under a key; both as little-endian numbers.
pub(super) fn keyed_hash(key: u128, text: &[u8]) -> u128 {
    let key = key.to_le_bytes();
    let (low, high) = (word(&key[..8]), word(&key[8..]));
    let mut sip = Sip([
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ]);
    let (whole, rest) = text.split_at(text.len() / 8 * 8);
    for chunk in whole.chunks(8) {
        sip.take(word(chunk));
    }
    sip.take(word(rest) | (text.len() as u64) << 56);
    sip.0[2] ^= 0xee;
    sip.rounds(4);
    let first = sip.fold();
    sip.0[1] ^= 0xdd;
    sip.rounds(4);
    u128::from(first) | u128::from(sip.fold()) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the authors' own list.
    #[test]
    fn it_is_the_published_function() {
        let key = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;
        let hash = |text: &[u8]| keyed_hash(key, text).to_le_bytes();
        let hex = |bytes: [u8; 16]| u128::from_be_bytes(bytes);
        assert_eq!(hex(hash(&[])), 0xa381_7f04_ba25_a8e6_6df6_7214_c755_0293);
        assert_eq!(hex(hash(&[0])), 0xda87_c1d8_6b99_af44_3476_5911_9b22_fc45);
        assert_eq!(hex(hash(&[0, 1, 2, 3, 4, 5, 6, 7])), 0x3b62_a9ba_6258_f561_0f83_e264_f314_97b4);
    }
}
