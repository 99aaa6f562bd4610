//! Command lines of systemd: its own quoting, variables, specifiers; no shell.

use crate::script;

/// A word of a command line, in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `${NAME}`: its value as part of this word.
    Variable(String),
    /// `$NAME` as a word of its own: its value, split into words.
    Split(String),
}

impl Word {
    /// A word without variables.
    pub(super) fn of(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())] }
    }

    fn text(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(c),
            _ => self.pieces.push(Piece::Text(c.to_string())),
        }
    }

    /// The word, if no variable is in it.
    pub(super) fn plain(&self) -> Option<String> {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Variable(_) | Piece::Split(_) => None,
        };
        self.pieces.iter().map(text).collect()
    }

    /// The word for a shell that expands no patterns (`-f`).
    pub(super) fn shell(&self) -> String {
        if let Some(text) = self.plain() {
            return script::quote(&text);
        }
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => script::quote(text),
            Piece::Variable(name) => format!("\"${{{name}-}}\""),
            Piece::Split(name) => format!("${{{name}-}}"),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// The words of a command line; an error says what is wrong.
pub(super) fn split(line: &str, expands: bool) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        let mut word = Word::default();
        let mut quote: Option<char> = None;
        let mut is_quoted = false;
        while let Some(c) = chars.next() {
            match (c, quote) {
                (c, Some(q)) if c == q => quote = None,
                ('"' | '\'', None) => (quote, is_quoted) = (Some(c), true),
                ('\\', _) => word.text(escape(&mut chars)?),
                (c, None) if c.is_whitespace() => break,
                (c, _) => word.text(c),
            }
        }
        if quote.is_some() {
            return Err("a quote is not closed".into());
        }
        if is_quoted && word.pieces.is_empty() {
            word.pieces.push(Piece::Text(String::new()));
        }
        words.push(if expands { variables(&word, is_quoted) } else { word });
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escape(chars: &mut Chars<'_>) -> Result<char, String> {
    let code = |chars: &mut Chars<'_>, length: usize, radix: u32| {
        let digits: String = chars.by_ref().take(length).collect();
        let number = u32::from_str_radix(&digits, radix).ok().filter(|_| digits.len() == length);
        number.and_then(char::from_u32).ok_or_else(|| format!("`\\{digits}` is no character"))
    };
    Ok(match chars.next() {
        Some('a') => '\u{7}',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some('s') => ' ',
        Some('x') => return code(chars, 2, 16),
        Some('u') => return code(chars, 4, 16),
        Some('U') => return code(chars, 8, 16),
        Some(c @ ('\\' | '"' | '\'')) => c,
        Some(c) => return Err(format!("`\\{c}` is no escape of systemd")),
        None => return Err("it ends with a backslash".into()),
    })
}

/// Finds `${NAME}`, `$NAME` as a whole word, and `$$`.
fn variables(word: &Word, is_quoted: bool) -> Word {
    let text = word.plain().unwrap_or_default();
    if let Some(name) =
        text.strip_prefix('$').filter(|name| !is_quoted && crate::names::is_variable(name))
    {
        return Word { pieces: vec![Piece::Split(name.to_owned())] };
    }
    let mut out = Word::default();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let braced = rest.strip_prefix("${").and_then(|tail| tail.split_once('}'));
        if let Some((name, tail)) = braced.filter(|(name, _)| crate::names::is_variable(name)) {
            out.pieces.push(Piece::Variable(name.to_owned()));
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("$$") {
            out.text('$');
            rest = tail;
        } else {
            out.text(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    if text.is_empty() {
        return word.clone();
    }
    out
}

/// What specifiers stand for in a unit of that name.
pub(super) struct Specifiers<'a> {
    /// `backup@home.service`.
    pub(super) unit: &'a str,
}

impl Specifiers<'_> {
    /// The text with its specifiers replaced; an error names one that only the machine knows.
    pub(super) fn expand(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let stem = self.unit.rsplit_once('.').map_or(self.unit, |(stem, _)| stem);
            let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
            match chars.next() {
                Some('%') => out.push('%'),
                Some('n') => out.push_str(self.unit),
                Some('N') => out.push_str(stem),
                Some('p') => out.push_str(prefix),
                Some('P') => out.push_str(&unescape(prefix)),
                Some('i') => out.push_str(instance),
                Some('I') => out.push_str(&unescape(instance)),
                Some('f') => out.push_str(&format!(
                    "/{}",
                    unescape(if instance.is_empty() { prefix } else { instance })
                )),
                Some('j') => out.push_str(prefix.rsplit('-').next().unwrap_or(prefix)),
                Some('t') => out.push_str("/run"),
                Some('S') => out.push_str("/var/lib"),
                Some('C') => out.push_str("/var/cache"),
                Some('L') => out.push_str("/var/log"),
                Some('E') => out.push_str("/etc"),
                Some('T') => out.push_str("/tmp"),
                Some('V') => out.push_str("/var/tmp"),
                Some(other) => return Err(format!("%{other}")),
                None => return Err("%".into()),
            }
        }
        Ok(out)
    }
}

/// `-` stands for `/`, `\x2d` for the byte.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], code) {
            (b'\\', Some(code)) if bytes.get(at + 1) == Some(&b'x') => {
                out.push(code);
                at += 4;
                continue;
            }
            (b'-', _) => out.push(b'/'),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> String {
        let words = split(line, true).unwrap();
        words.iter().map(Word::shell).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn command_lines_are_split_as_systemd_splits_them() {
        for (line, expected) in [
            ("/bin/a -b 'c d' \"e\\tf\"", "/bin/a -b 'c d' 'e\tf'"),
            (
                "/bin/echo $ARGS ${ONE}-x \"$ARGS\" $$x $1",
                "/bin/echo ${ARGS-} \"${ONE-}\"-x '$ARGS' '$x' '$1'",
            ),
            ("/bin/a '' * a\\x20b", "/bin/a '' '*' 'a b'"),
            (
                "/bin/sh -c 'echo \"${HOME}\" $$(date)'",
                "/bin/sh -c 'echo \"'\"${HOME-}\"'\" $(date)'",
            ),
        ] {
            assert_eq!(shell(line), expected, "{line}");
        }
        for wrong in ["/bin/a 'b", "/bin/a \\q", "/bin/a \\x1", "/bin/a \\"] {
            assert!(split(wrong, true).is_err(), "{wrong}");
        }
    }

    #[test]
    fn specifiers_of_the_unit_are_known_and_those_of_the_machine_are_not() {
        let of = |text: &str| Specifiers { unit: "a-b@srv-x\\x2dy.service" }.expand(text);
        assert_eq!(
            of("%n %p %P %i %I %f %j %%").as_deref(),
            Ok("a-b@srv-x\\x2dy.service a-b a/b srv-x\\x2dy srv/x-y /srv/x-y b %")
        );
        assert_eq!(of("%H"), Err("%H".into()));
        assert_eq!(of("100%"), Err("%".into()));
    }
}
