//! From an offset within a scalar's value to a place in the file: templates are judged after
//! unquoting and unfolding, and their mistakes are shown where they are written.

use super::Scalar;
use crate::diagnostic::Place;

/// Where a scalar's text lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Bytes of the file, quotes included.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_literal: bool,
}

impl Source {
    pub(super) const NOWHERE: Self = Self { start: 0, end: 0, is_literal: false };
}

impl Scalar {
    /// The place of the byte `offset` of the value of a scalar that stands at `at` in `file`.
    ///
    /// Exact for block scalars (`|`), and wherever the tag around the offset (or a text without
    /// tags) is written out literally within the others; else the start of the scalar.
    pub(crate) fn place_of(&self, offset: usize, at: Place, file: &str) -> Place {
        let offset = floor_char(&self.text, offset);
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = count(&before[line_start..]);
        if self.source.is_literal {
            // The scalar's place is that of its first line with content.
            let blank = self.text.len() - self.text.trim_start_matches('\n').len();
            let line = count_lines(before).saturating_sub(u32::try_from(blank).unwrap_or(0));
            return Place { line: at.line + line, column: at.column + column };
        }
        let raw = file.get(self.source.start..self.source.end).unwrap_or("");
        let (from, to) = tag_around(&self.text, offset).unwrap_or((0, self.text.len()));
        let part = &self.text[from..to];
        let earlier = self.text[..from].matches(part).count();
        match raw.match_indices(part).nth(earlier) {
            Some((found, _)) if !part.is_empty() => {
                place_in(file, self.source.start + found + offset - from)
            }
            _ => at,
        }
    }
}

/// The `{{ }}` or `{% %}` around an offset.
fn tag_around(text: &str, offset: usize) -> Option<(usize, usize)> {
    let before = &text[..text.floor_char_boundary(offset + 2).max(offset)];
    let from = before.rfind("{{").max(before.rfind("{%"))?;
    let after = text.get(offset..)?;
    let ends = [after.find("}}"), after.find("%}")];
    let to = ends.into_iter().flatten().min().map_or(text.len(), |end| offset + end + 2);
    Some((from, to))
}

/// The place of a byte of the file.
pub(crate) fn place_in(file: &str, offset: usize) -> Place {
    let before = &file[..floor_char(file, offset)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    Place { line: 1 + count_lines(before), column: 1 + count(&before[line_start..]) }
}

fn floor_char(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset)
}

fn count_lines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|b| *b == b'\n').count()).unwrap_or(u32::MAX)
}

fn count(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}
