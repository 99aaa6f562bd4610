//! What people write for a run: its id, a unique beginning of it, or `@latest`.

use super::Client;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use fencepost_api::rest::{Run, RunQuery, routes};

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
        let prefix = Some(text.to_owned());
        let query = RunQuery { limit: Some(SOME), run_id_prefix: prefix, ..RunQuery::default() };
        let mut found = self.runs(dag_id, query)?;
        if let Some(exact) = found.iter().position(|run| run.run_id == text) {
            return Ok(found.swap_remove(exact));
        }
        match found.len() {
            1 => Ok(found.swap_remove(0)),
            0 => Err(CliError::new(Exit::NotFound, format!("`{dag_id}` has no run `{text}`"))
                .hint(format!("see  fencepost runs list {dag_id}"))),
            _ => self.exact_or_ambiguous(dag_id, text, &found),
        }
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
