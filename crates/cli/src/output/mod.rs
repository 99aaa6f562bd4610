//! What a verb prints: data on stdout in the format asked for, everything else on stderr.
//!
//! Data passes through as the server sent it (also fields that this build does not know); tables
//! are made of the typed form by a [`Row`] or a [`Detail`].

pub(crate) mod paint;
pub(crate) mod span;
pub(crate) mod table;
pub(crate) mod yaml;

use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::global::{Format, Global};
use fencepost_core::time::Timestamp;
use paint::Paint;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, Write};
use table::{Cell, Style, Table};
use unicode_width::UnicodeWidthStr;

/// A column of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    Always(&'static str),
    /// With `-o wide` only.
    Wide(&'static str),
}

/// A resource as a row of a table.
pub(crate) trait Row: DeserializeOwned {
    /// One for each cell.
    const COLUMNS: &'static [Column];
    /// As many as there are columns, also the wide ones.
    fn cells(&self, now: Timestamp) -> Vec<Cell>;
    /// What `-o name` prints.
    fn name(&self) -> String;
}

/// A resource on its own, as lines of `name: value`.
pub(crate) trait Detail: DeserializeOwned {
    /// The lines.
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)>;
    /// What `-o name` prints.
    fn name(&self) -> String;
}

/// Where and how a verb prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    style: Style,
    /// Whether stderr shows colours and moving progress.
    pub(crate) lively: bool,
    err_colour: bool,
}

impl Output {
    /// As flags and environment say.
    pub(crate) fn new(global: &Global, env: &Environment) -> Self {
        let colour = env.colour(global.no_color, env.stdout_is_terminal);
        let width = env.stdout_is_terminal.then(terminal_width).flatten();
        Self {
            format: global.format,
            quiet: global.quiet,
            style: Style { colour, width },
            lively: env.stderr_is_terminal && !global.quiet,
            err_colour: env.colour(global.no_color, env.stderr_is_terminal),
        }
    }

    /// Whether stdout shows colours and icons.
    pub(crate) const fn colour(&self) -> bool {
        self.style.colour
    }

    /// Text on stdout, as it is.
    #[expect(clippy::unused_self, reason = "every verb prints through what knows how to print")]
    pub(crate) fn print(&self, text: &str) -> Outcome<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// A remark on stderr, unless `-q`.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            self.complain(text);
        }
    }

    /// A line on stderr. That nobody reads it is no failure of the verb.
    #[expect(clippy::unused_self, reason = "every verb prints through what knows how to print")]
    pub(crate) fn complain(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// The failure of the verb, on stderr.
    pub(crate) fn fail(&self, error: &CliError) {
        let label = Paint::Bad.apply("error:", self.err_colour);
        let clean = |text: &str| -> String {
            text.chars().map(|c| if c == '\n' { c } else { table::visible(c) }).collect()
        };
        self.complain(&format!("{label} {}", clean(&error.message)));
        for hint in &error.hints {
            self.complain(&format!("  {}", clean(hint)));
        }
    }

    /// A list: an array in data formats.
    pub(crate) fn list<T: Row>(&self, items: Vec<Value>, now: Timestamp) -> Outcome<()> {
        if self.data(&items)? {
            return Ok(());
        }
        let rows: Vec<T> = items.into_iter().map(typed).collect::<Outcome<_>>()?;
        if self.format == Format::Name {
            let names: Vec<String> = rows.iter().map(|row| row.name() + "\n").collect();
            return self.print(&names.concat());
        }
        if rows.is_empty() {
            self.remark("nothing to show");
            return Ok(());
        }
        self.print(&self.table_of(&rows, now).render(self.style))
    }

    fn table_of<T: Row>(&self, rows: &[T], now: Timestamp) -> Table {
        let wide = self.format == Format::Wide;
        let shown = |column: &Column| matches!(column, Column::Always(_)) || wide;
        let mut table = Table::default();
        for column in T::COLUMNS {
            if let (true, Column::Always(name) | Column::Wide(name)) = (shown(column), column) {
                table.headers.push(name);
            }
        }
        for row in rows {
            let cells = row.cells(now).into_iter().zip(T::COLUMNS);
            table.rows.push(cells.filter(|(_, c)| shown(c)).map(|(cell, _)| cell).collect());
        }
        table
    }

    /// One resource: an object in data formats.
    pub(crate) fn show<T: Detail>(&self, item: Value, now: Timestamp) -> Outcome<()> {
        if self.data(&item)? {
            return Ok(());
        }
        let detail: T = typed(item)?;
        if self.format == Format::Name {
            return self.print(&(detail.name() + "\n"));
        }
        let lines = detail.lines(now);
        let width = lines.iter().map(|(name, _)| name.width() + 1).max().unwrap_or(0);
        let mut table = Table { headers: vec!["", ""], rows: Vec::new() };
        for (name, cell) in lines {
            let label = format!("{name}:{}", " ".repeat(width - name.width() - 1));
            table.rows.push(vec![Cell::painted(label, Paint::Dim), cell]);
        }
        let text = table.render(Style { width: None, ..self.style });
        self.print(text.split_once('\n').map_or("", |(_, rows)| rows))
    }

    /// What a dry run says: `would TEXT`, or the things that it is about as data.
    pub(crate) fn would(&self, text: &str, about: &impl serde::Serialize) -> Outcome<()> {
        if self.data(about)? { Ok(()) } else { self.print(&format!("would {text}\n")) }
    }

    /// Prints `value` if the format is a data format.
    pub(crate) fn data(&self, value: &impl serde::Serialize) -> Outcome<bool> {
        let value = || serde_json::to_value(value).map_err(unexpected);
        match self.format {
            Format::Json => {
                let text = serde_json::to_string_pretty(&value()?).map_err(unexpected)?;
                self.print(&(text + "\n")).map(|()| true)
            }
            Format::Yaml => self.print(&yaml::to_yaml(&value()?)).map(|()| true),
            Format::Sarif | Format::Github => {
                Err(CliError::usage("this format is for `fencepost validate` only"))
            }
            Format::Table | Format::Wide | Format::Name => Ok(false),
        }
    }
}

/// The typed form of what the server sent.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Outcome<T> {
    serde_json::from_value(value).map_err(|error| {
        CliError::new(Exit::Unexpected, format!("the server's answer is not understood: {error}"))
            .hint("its version may be another one: see `fencepost version`")
    })
}

fn unexpected(error: serde_json::Error) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}

/// Columns of the terminal, if there is one.
pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0).max(40))
}
