//! Tables without lines, as kubectl prints them: capitals above, two spaces between columns.

use super::paint::{Paint, look};
use unicode_width::UnicodeWidthStr;

/// One cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
    /// Shown before the text where icons are on.
    icon: &'static str,
}

impl Cell {
    /// In that paint.
    pub(crate) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint, icon: "" }
    }

    /// A state or an outcome, with its icon and colour.
    pub(crate) fn state(word: &str) -> Self {
        let (icon, paint) = look(word);
        Self { text: word.into(), paint, icon }
    }

    /// Other text with the icon and colour of that state.
    pub(crate) fn state_with(word: &str, text: &str) -> Self {
        let (icon, paint) = look(word);
        Self { text: text.into(), paint, icon }
    }

    /// The text, or a dash for nothing.
    pub(crate) fn or_dash(text: Option<impl ToString>) -> Self {
        match text.map(|text| text.to_string()).filter(|text| !text.is_empty()) {
            Some(text) => Self::painted(text, Paint::Plain),
            None => Self::painted(super::span::NOTHING, Paint::Dim),
        }
    }

    /// What is printed, without colours: control characters of foreign text are made visible.
    fn plain(&self, icons: bool) -> String {
        let text = self.text.chars().map(visible);
        if icons && !self.icon.is_empty() {
            format!("{} {}", self.icon, text.collect::<String>())
        } else {
            text.collect()
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, Paint::Plain)
    }
}

/// A character that cannot move the cursor or break the row.
pub(crate) fn visible(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

/// How tables are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Colours and icons.
    pub(crate) colour: bool,
    /// Longest row; `None`: as long as it gets.
    pub(crate) width: Option<usize>,
}

/// A header and rows of as many cells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) headers: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The lines, each with its end.
    pub(crate) fn render(&self, style: Style) -> String {
        let plain: Vec<Vec<String>> = (self.rows.iter())
            .map(|row| row.iter().map(|cell| cell.plain(style.colour)).collect())
            .collect();
        let widths = self.widths(&plain, style.width);
        let head: Vec<String> = self.headers.iter().map(|h| (*h).into()).collect();
        let mut out = line(&head, &widths, &|_| Paint::Strong, style.colour);
        for (cells, texts) in self.rows.iter().zip(&plain) {
            out.push_str(&line(texts, &widths, &|i| cells[i].paint, style.colour));
        }
        out
    }

    /// Each column's width; where the rows are longer than the limit, the widest columns give way,
    /// but never a name: names are there to be copied.
    fn widths(&self, plain: &[Vec<String>], limit: Option<usize>) -> Vec<usize> {
        let column = |i: usize| plain.iter().map(move |row| row[i].width());
        let mut widths: Vec<usize> = (self.headers.iter().enumerate())
            .map(|(i, header)| column(i).max().unwrap_or(0).max(header.width()))
            .collect();
        let Some(limit) = limit else { return widths };
        let is_name = |i: usize| self.rows.iter().any(|row| row[i].paint == Paint::Strong);
        let gaps = 2 * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            let others = widths.iter_mut().enumerate().filter(|(i, _)| !is_name(*i));
            match others.map(|(_, width)| width).max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// A column is never cut below this.
const NARROWEST: usize = 12;

fn line(
    texts: &[String],
    widths: &[usize],
    paint: &dyn Fn(usize) -> Paint,
    colour: bool,
) -> String {
    let mut out = String::new();
    for (index, text) in texts.iter().enumerate() {
        let text = cut(text, widths[index]);
        out.push_str(&paint(index).apply(&text, colour));
        if index + 1 < texts.len() {
            out.push_str(&" ".repeat(widths[index].saturating_sub(text.width()) + 2));
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The text, or as much of it as fits before `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        let mut buffer = [0; 4];
        if out.width() + c.encode_utf8(&mut buffer).width() >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            headers: vec!["NAME", "STATE", "NOTE"],
            rows: vec![
                vec!["load".into(), Cell::state("success"), "a note that is rather long".into()],
                vec!["日本".into(), Cell::state("held"), Cell::or_dash(None::<String>)],
            ],
        }
    }

    #[test]
    fn columns_line_up_by_display_width() {
        insta::assert_snapshot!(table().render(Style::default()), @r"
        NAME  STATE    NOTE
        load  success  a note that is rather long
        日本  held     –
        ");
    }

    #[test]
    fn a_narrow_terminal_cuts_the_widest_column() {
        let style = Style { colour: false, width: Some(32) };
        insta::assert_snapshot!(table().render(style), @r"
        NAME  STATE    NOTE
        load  success  a note that is r…
        日本  held     –
        ");
    }

    #[test]
    fn foreign_text_cannot_write_escape_sequences() {
        let table = Table { headers: vec!["X"], rows: vec![vec!["a\u{1b}[2Jb\nc".into()]] };
        assert_eq!(table.render(Style::default()), "X\na\u{fffd}[2Jb\u{fffd}c\n");
    }
}
