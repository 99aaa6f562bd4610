//! Pages of lists: limits, and opaque cursors that name a place in an order, not a number of rows,
//! so that what is inserted meanwhile neither repeats nor hides an item.

use super::failure::Failure;
use crate::auth::hex;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::Page;
use serde::Serialize;

const DEFAULT: u32 = 50;
const MOST: u32 = 1_000;
/// Between the parts of a cursor.
const GAP: char = '\u{1f}';

/// How many items a page has.
pub(crate) fn limit(asked: Option<u32>) -> u32 {
    asked.unwrap_or(DEFAULT).clamp(1, MOST)
}

/// As a number of items.
pub(crate) fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The text of a place in the list of that name.
pub(crate) fn write(list: &str, parts: &[&str]) -> String {
    let mut text = list.to_owned();
    for part in parts {
        text.push(GAP);
        text.push_str(part);
    }
    hex(text.as_bytes())
}

/// The parts of a cursor of the list of that name.
pub(crate) fn read<const N: usize>(
    list: &str,
    cursor: Option<&str>,
) -> Result<Option<[String; N]>, Failure> {
    let Some(cursor) = cursor else { return Ok(None) };
    let wrong = || Failure::new(ProblemCode::BadRequest, "?cursor: not a cursor of this list");
    let text = unhex(cursor).ok_or_else(wrong)?;
    let mut parts = text.split(GAP);
    if parts.next() != Some(list) {
        return Err(wrong());
    }
    let parts: Vec<String> = parts.map(str::to_owned).collect();
    parts.try_into().map(Some).map_err(|_| wrong())
}

/// A part that is a number.
pub(crate) fn number(part: &str) -> Result<i64, Failure> {
    let wrong = |_| Failure::new(ProblemCode::BadRequest, "?cursor: not a cursor of this list");
    part.parse().map_err(wrong)
}

fn unhex(text: &str) -> Option<String> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    };
    String::from_utf8(text.as_bytes().chunks(2).map(pair).collect::<Option<_>>()?).ok()
}

/// Cuts what was read (one more than the page holds) to the page; the place of the last item if
/// more is there.
pub(crate) fn cut<T>(
    mut found: Vec<T>,
    limit: u32,
    place: impl Fn(&T) -> String,
) -> (Vec<T>, Option<String>) {
    let limit = count(limit);
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(place);
    (found, next)
}

/// A page.
pub(crate) fn page<T: Serialize>(items: Vec<T>, next_cursor: Option<String>) -> Page<T> {
    Page { items, next_cursor, total: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written_and_only_by_their_list() {
        let text = write("runs", &["17", "é\u{1}"]);
        assert_eq!(read("runs", Some(&text)).unwrap(), Some(["17".into(), "é\u{1}".into()]));
        assert_eq!(read::<1>("runs", None).unwrap(), None);
        assert!(read::<1>("runs", Some(&text)).is_err());
        assert!(read::<2>("dags", Some(&text)).is_err());
        for bad in ["", "x", "zz", "éé", "ff", "é"] {
            assert!(read::<2>("runs", Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_says_where_to_go_on_only_if_there_is_more() {
        let place = |n: &i32| n.to_string();
        assert_eq!(cut(vec![1, 2, 3], 2, place), (vec![1, 2], Some("2".into())));
        assert_eq!(cut(vec![1, 2], 2, place), (vec![1, 2], None));
        assert_eq!((limit(None), limit(Some(0)), limit(Some(u32::MAX))), (50, 1, 1_000));
    }
}
