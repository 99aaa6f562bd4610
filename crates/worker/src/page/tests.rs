use super::*;

const HOUR: u64 = 3_600_000_000_000;

fn page(temp: &tempfile::TempDir) -> (AttemptDir, Page) {
    let dir = AttemptDir::new(temp.path());
    let lease = Lease::of(7, HOUR);
    let page = Page::create(&dir, ClockKind::Boottime, lease, BootId::from_words(1, 2));
    (dir, page.unwrap())
}

#[test]
fn a_take_over_sets_the_deadline_and_shuts_out_the_old_owner() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, mine) = page(&temp);
    let old = mine.generation();
    mine.push(old, 2 * HOUR, 1).unwrap();
    assert_eq!(mine.lease(), Lease::of(7, 2 * HOUR));

    let theirs = Page::open(&dir).unwrap();
    let new = theirs.take_over(Lease::of(8, HOUR / 2)).unwrap();
    assert_eq!(mine.lease(), Lease::of(8, HOUR / 2), "down as well as up");
    assert_eq!(mine.push(old, 9 * HOUR, 1), Err(PushRefused::NotOwner));
    assert_eq!(theirs.deadline_ns(), HOUR / 2);
    theirs.push(new, HOUR, 1).unwrap();
    assert_eq!(theirs.push(new, 2 * HOUR, HOUR), Err(PushRefused::Expired));
}

#[test]
fn a_spent_lease_never_moves_a_deadline_up() {
    let temp = tempfile::tempdir().unwrap();
    let (_dir, page) = page(&temp);
    let spent = |deadline_ns| Lease { is_spent: true, ..Lease::of(8, deadline_ns) };
    page.take_over(spent(2 * HOUR)).unwrap();
    assert_eq!(page.lease(), Lease::of(8, HOUR));
    page.take_over(spent(HOUR / 2)).unwrap();
    assert_eq!(page.lease(), Lease::of(8, HOUR / 2));
}

#[test]
fn the_first_stop_reason_stays_and_kill_now_is_added() {
    let temp = tempfile::tempdir().unwrap();
    let (_dir, page) = page(&temp);
    assert_eq!(page.stop(), None);
    page.request_stop(Reason::Cancel, false);
    page.request_stop(Reason::Clear, false);
    assert_eq!(page.stop(), Some((Reason::Cancel, false)));
    page.request_stop(Reason::Kill, true);
    assert_eq!(page.stop(), Some((Reason::Cancel, true)));
}

#[test]
fn a_cut_off_or_foreign_page_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, _page) = page(&temp);
    let refused = |bytes: &[u8]| {
        std::fs::write(dir.page(), bytes).unwrap();
        Page::open(&dir).unwrap_err().kind()
    };
    assert_eq!(refused(b""), io::ErrorKind::InvalidData);
    assert_eq!(refused(&[b'x'; 4096]), io::ErrorKind::InvalidData);
}

#[test]
fn deadlines_beyond_the_word_saturate() {
    assert_eq!(lease_word(3, u64::MAX) >> DEADLINE_BITS, 3);
    assert_eq!(lease_word(3, u64::MAX) & DEADLINE_MASK, (u64::MAX / 1_000).min(DEADLINE_MASK));
}
