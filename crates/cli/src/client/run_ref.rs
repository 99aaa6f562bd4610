//! What people write for a run: its id, a unique beginning of it, or `@latest`.

use super::Client;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use fencepost_api::rest::{Run, RunQuery, routes};
use fencepost_core::time::Timestamp;

/// Enough to tell whether a beginning is unique, and to name some if it is not.
const SOME: u32 = 5;

impl Client {
    /// The run that `text` means.
    pub(crate) fn run(&self, dag_id: &str, text: &str) -> Outcome<Run> {
        if text == "@latest" {
            let newest = self.runs(dag_id, RunQuery { limit: Some(1), ..RunQuery::default() })?;
            return newest.into_iter().next().ok_or_else(|| {
                CliError::new(Exit::NotFound, format!("`{dag_id}` has no runs yet"))
                    .hint(format!("start one:  fencepost dags trigger {dag_id}"))
            });
        }
        for text in std::iter::once(text.to_owned()).chain(other_forms(text)) {
            let prefix = Some(text.clone());
            let query =
                RunQuery { limit: Some(SOME), run_id_prefix: prefix, ..RunQuery::default() };
            let mut found = self.runs(dag_id, query)?;
            if let Some(exact) = found.iter().position(|run| run.run_id == text) {
                return Ok(found.swap_remove(exact));
            }
            match found.len() {
                0 => {}
                1 => return Ok(found.swap_remove(0)),
                _ => return self.exact_or_ambiguous(dag_id, &text, &found),
            }
        }
        Err(CliError::new(Exit::NotFound, format!("`{dag_id}` has no run `{text}`"))
            .hint(format!("see  fencepost runs list {dag_id}")))
    }

    fn runs(&self, dag_id: &str, query: RunQuery) -> Outcome<Vec<Run>> {
        let limit = query.limit;
        let items = self.list(routes::RUN_LIST, &[dag_id], &query, limit)?;
        items.into_iter().map(typed).collect()
    }

    /// Many begin so: the exact one may be none of the newest few.
    fn exact_or_ambiguous(&self, dag_id: &str, text: &str, found: &[Run]) -> Outcome<Run> {
        match self.read(routes::RUN_SHOW, &[dag_id, text]) {
            Err(error) if error.exit == Exit::NotFound => {
                let message = format!("several runs of `{dag_id}` begin with `{text}`");
                let names = found.iter().map(|run| run.run_id.clone());
                Err(names.fold(CliError::usage(message), CliError::hint))
            }
            answer => answer,
        }
    }
}

/// The instant in `scheduled__INSTANT` in the other ways of writing it: with milliseconds, and
/// without a fraction that is zero.
fn other_forms(text: &str) -> Vec<String> {
    let Some((prefix, at)) = text.split_once("__") else { return Vec::new() };
    let Ok(at) = at.parse::<Timestamp>() else { return Vec::new() };
    let forms = [format!("{prefix}__{at}"), format!("{prefix}__{}", at.to_jiff())];
    forms.into_iter().filter(|form| form != text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_in_ids_may_be_written_in_other_ways() {
        let (long, short) = ("s__2026-09-22T05:00:00.000Z", "s__2026-09-22T05:00:00Z");
        for (text, want) in [
            (short, &[long][..]),
            (long, &[short]),
            ("s__2026-09-22T07:00:00+02:00", &[long, short]),
            ("mine__x", &[]),
            ("mine", &[]),
        ] {
            assert_eq!(other_forms(text), want, "{text}");
        }
    }
}
