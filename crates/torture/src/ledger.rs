//! The oracle: what processes of tasks did, written by themselves, appended line by line.
//!
//! A line is written by one `write` to a file that is opened for appending, so that lines of many
//! processes do not mix, and what was written stays whatever becomes of its writer.

use crate::clock::{MS, boot_ns};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Result, Write as _};
use std::path::Path;

/// Whose work it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TiKey {
    pub dag: String,
    pub run: String,
    pub task: String,
}

impl std::fmt::Display for TiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.dag, self.run, self.task)
    }
}

/// What a process of a task did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Its main process is there; `tries` is the number of the try.
    Begin { ti: TiKey, tries: u32 },
    /// A process of it lives, the main one or another.
    Tick,
    /// A write to the fenced sink was accepted.
    Write,
    /// A write to the fenced sink was refused.
    Refused,
    /// Its main process has done everything, and exits with this status.
    End { status: u8 },
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub token: i64,
    /// On the boot-time clock.
    pub at: u64,
    /// As the process sees itself.
    pub pid: u32,
    pub deed: Deed,
}

impl Line {
    fn text(&self) -> String {
        let Self { token, at, pid, deed } = self;
        let deed = match deed {
            Deed::Begin { ti, tries } => {
                format!("begin {} {} {} {tries}", ti.dag, ti.run, ti.task)
            }
            Deed::Tick => "tick".into(),
            Deed::Write => "write".into(),
            Deed::Refused => "refused".into(),
            Deed::End { status } => format!("end {status}"),
        };
        format!("{token} {at} {pid} {deed}\n")
    }

    /// Reads a line; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let token = words.next()?.parse().ok()?;
        let at = words.next()?.parse().ok()?;
        let pid = words.next()?.parse().ok()?;
        let deed = match words.next()? {
            "begin" => {
                let mut word = || words.next().map(ToOwned::to_owned);
                let ti = TiKey { dag: word()?, run: word()?, task: word()? };
                Deed::Begin { ti, tries: words.next()?.parse().ok()? }
            }
            "tick" => Deed::Tick,
            "write" => Deed::Write,
            "refused" => Deed::Refused,
            "end" => Deed::End { status: words.next()?.parse().ok()? },
            _ => return None,
        };
        words.next().is_none().then_some(Self { token, at, pid, deed })
    }
}

/// A process's handle on the ledger.
#[derive(Debug)]
pub struct Pen {
    file: File,
    token: i64,
}

impl Pen {
    /// Opens the ledger for one attempt.
    pub fn open(path: &Path, token: i64) -> Result<Self> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Self { file, token })
    }

    /// Writes down what has just been done.
    pub fn note(&mut self, deed: Deed) -> Result<()> {
        let line = Line { token: self.token, at: boot_ns(), pid: std::process::id(), deed };
        self.file.write_all(line.text().as_bytes())
    }
}

/// Of ticks this close to each other some are left out: hours of them would fill the memory.
const DENSE_NS: u64 = 500 * MS;

/// Reads a ledger: its lines, and those that are none. The first and the last tick of an attempt stay, and
/// those before and after a pause.
pub fn read(path: &Path) -> Result<(Vec<Line>, Vec<String>)> {
    let (mut thinner, mut bad) = (Thinner::default(), Vec::new());
    for text in BufReader::new(File::open(path)?).lines() {
        let text = text?;
        match Line::parse(&text) {
            Some(line) => thinner.take(line),
            None => bad.push(text),
        }
    }
    Ok((thinner.finish(), bad))
}

#[derive(Default)]
struct Thinner {
    kept: Vec<Line>,
    /// Of each attempt: when its last kept line was, and a tick after it that may be left out.
    last: BTreeMap<i64, (u64, Option<Line>)>,
}

impl Thinner {
    fn take(&mut self, line: Line) {
        let (kept_at, pending) = self.last.entry(line.token).or_default();
        let newest = pending.as_ref().map_or(*kept_at, |tick| tick.at);
        if line.at > newest + DENSE_NS || line.deed != Deed::Tick {
            self.kept.extend(pending.take());
        }
        if line.deed == Deed::Tick && line.at <= *kept_at + DENSE_NS {
            *pending = Some(line);
        } else {
            *kept_at = line.at;
            *pending = None;
            self.kept.push(line);
        }
    }

    fn finish(mut self) -> Vec<Line> {
        self.kept.extend(self.last.into_values().filter_map(|(_, pending)| pending));
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_dense_ticks_those_at_the_edges_stay() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ledger");
        let tick = |token, ms: u64| Line { token, at: ms * MS, pid: 1, deed: Deed::Tick };
        let dense = (0..60).map(|n| tick(1, 1_000 + n * 100));
        // A pause, and another attempt.
        let all: Vec<Line> =
            dense.chain([tick(1, 9_000), tick(2, 9_010), tick(1, 9_100)]).collect();
        std::fs::write(&path, all.iter().map(Line::text).collect::<String>())?;
        let (lines, bad) = read(&path)?;
        let of =
            |token| lines.iter().filter(move |line| line.token == token).map(|line| line.at / MS);
        let mine: Vec<u64> = of(1).collect();
        assert_eq!(mine.first(), Some(&1_000));
        assert_eq!(mine[mine.len() - 3..], [6_900, 9_000, 9_100]);
        assert!(mine.len() < 20 && bad.is_empty(), "{mine:?}");
        let pauses = mine.windows(2).filter(|pair| pair[1] - pair[0] > 700);
        assert_eq!(pauses.count(), 1, "no pause is made");
        assert_eq!(of(2).collect::<Vec<u64>>(), [9_010]);
        Ok(())
    }

    #[test]
    fn lines_are_read_as_they_were_written() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ledger");
        let ti = TiKey { dag: "d".into(), run: "r1".into(), task: "t".into() };
        let deeds = [
            Deed::Begin { ti, tries: 2 },
            Deed::Tick,
            Deed::Write,
            Deed::Refused,
            Deed::End { status: 3 },
        ];
        for deed in deeds.clone() {
            Pen::open(&path, 42)?.note(deed)?;
        }
        File::options().append(true).open(&path)?.write_all(b"42 half\n")?;
        let (lines, bad) = read(&path)?;
        assert_eq!(lines.iter().map(|line| line.deed.clone()).collect::<Vec<_>>(), deeds);
        assert!(lines.iter().all(|line| line.token == 42 && line.pid == std::process::id()));
        assert!(lines.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert_eq!(bad, ["42 half"]);
        Ok(())
    }
}
