//! `fencepost dags diff`: what changed between two versions of a DAG file, line by line.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::paint::Paint;
use fencepost_api::rest::{DagVersionDetail, routes};

/// Prints the difference.
pub(super) fn run(
    cx: &Cx,
    client: &Client,
    dag: &str,
    (from, to): (Option<u32>, Option<u32>),
) -> Outcome<()> {
    let version = |number: String| -> Outcome<DagVersionDetail> {
        client.read(routes::DAG_VERSION, &[dag, &number])
    };
    let new = version(to.map_or("latest".into(), |number| number.to_string()))?;
    let before = from.unwrap_or(new.version.version.saturating_sub(1));
    if before == 0 {
        let message = format!("`{dag}` has one version only");
        return Err(CliError::new(Exit::NotFound, message));
    }
    let old = version(before.to_string())?;
    if old.source == new.source {
        cx.out.remark("no difference in the file");
        return Ok(());
    }
    let colour = cx.out.colour();
    let head = format!("--- v{}\n+++ v{}\n", old.version.version, new.version.version);
    let lines = compare(&old.source, &new.source);
    let body: String = lines.iter().map(|line| line.render(colour)).collect();
    cx.out.print(&(head + &body))
}

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

impl Line<'_> {
    fn render(&self, colour: bool) -> String {
        let (sign, text, paint) = match self {
            Self::Same(text) => (' ', text, Paint::Plain),
            Self::Gone(text) => ('-', text, Paint::Bad),
            Self::New(text) => ('+', text, Paint::Good),
        };
        paint.apply(&format!("{sign}{text}"), colour) + "\n"
    }
}

/// Most cells of the comparison's table; files that differ more are shown as replaced.
const LARGEST: usize = 25_000_000;

/// The longest common subsequence, between equal beginnings and ends.
fn compare<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let pairs = || old.iter().zip(&new);
    let head = pairs().take_while(|(a, b)| a == b).count();
    let ends = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    if a.len() * b.len() > LARGEST {
        lines.extend(a.iter().map(|line| Line::Gone(line)));
        lines.extend(b.iter().map(|line| Line::New(line)));
    } else {
        middle(a, b, &mut lines);
    }
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

fn middle<'a>(a: &[&'a str], b: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let width = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            lines.push(Line::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            lines.push(Line::Gone(a[i]));
            i += 1;
        } else {
            lines.push(Line::New(b[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_stand_between_equal_ones() {
        let text: String = compare("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n")
            .iter()
            .map(|line| line.render(false))
            .collect();
        assert_eq!(text, " a\n-b\n+x\n c\n d\n+e\n");
        assert_eq!(compare("", "a"), [Line::New("a")]);
        assert_eq!(compare("a\na", "a"), [Line::Same("a"), Line::Gone("a")]);
    }
}
