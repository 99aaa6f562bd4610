//! DAGs, their versions, and the files that could not be read.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::{cursor, dag_view};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::{DagQuery, DagVersion, DagVersionDetail, ListQuery};
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_store::Tx;
use fencepost_store::query::dag::{self, DagRow, VersionRow};
use fencepost_store::query::listing;
use std::collections::BTreeMap;

/// DAGs read at a time when a list is filtered.
const READ: u32 = 500;

/// The DAG of that name.
pub(super) async fn find(tx: &Tx, dag_id: &str) -> Result<DagRow, Failure> {
    let found = dag::get(tx, dag_id).await?;
    found.ok_or_else(|| Refusal::NoDag(dag_id.into()).into())
}

pub(super) async fn list(call: &Call) -> Done {
    let query: DagQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [mut after] = cursor::read("dags", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let mut rows: Vec<DagRow> = Vec::new();
    loop {
        let found = dag::list(&tx, &after, READ).await?;
        let is_last = found.len() < cursor::count(READ);
        if let Some(last) = found.last() {
            after.clone_from(&last.dag_id);
        }
        rows.extend(found.into_iter().filter(|row| is_wanted(row, &query)));
        if is_last || rows.len() > cursor::count(limit) {
            break;
        }
    }
    let (rows, next) = cursor::cut(rows, limit, |row| cursor::write("dags", &[&row.dag_id]));
    let items = dag_view::dags(call, &tx, &rows).await?;
    Answer::ok(&cursor::page(items, next))
}

fn is_wanted(row: &DagRow, query: &DagQuery) -> bool {
    let has = |tag: &String| {
        row.tags.as_array().is_some_and(|tags| tags.iter().any(|own| own.as_str() == Some(tag)))
    };
    (row.is_active || query.inactive == Some(true))
        && query.is_paused.is_none_or(|paused| paused == row.is_paused)
        && query.tag.as_ref().is_none_or(has)
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let row = find(&tx, call.arg(0)).await?;
    let version = call.cx().catalog.version(&tx, row.version_pk).await?;
    let active = listing::runs::count_active(&tx, &row.dag_id).await?;
    let mut dags = dag_view::dags(call, &tx, std::slice::from_ref(&row)).await?;
    match dags.pop() {
        Some(dag) => Answer::ok(&dag_view::detail(dag, &version, active)),
        None => Err(Refusal::NoDag(row.dag_id).into()),
    }
}

pub(super) async fn versions(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let below = match cursor::read::<1>("versions", query.cursor.as_deref())? {
        Some([below]) => cursor::number(&below)?,
        None => i64::MAX,
    };
    let tx = call.read().await?;
    let row = find(&tx, call.arg(0)).await?;
    let found = listing::dags::versions(&tx, &row.dag_id, below, limit + 1).await?;
    let place = |v: &VersionRow| cursor::write("versions", &[&v.version.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    let runs = runs_by_version(&tx, &row.dag_id).await?;
    let items = found.into_iter().map(|version| wire(version, &row, &runs)).collect();
    Answer::ok(&cursor::page(items, next))
}

async fn runs_by_version(tx: &Tx, dag_id: &str) -> Result<BTreeMap<i64, i64>, Failure> {
    Ok(listing::dags::version_runs(tx, dag_id).await?.into_iter().collect())
}

fn wire(version: VersionRow, row: &DagRow, runs: &BTreeMap<i64, i64>) -> DagVersion {
    let runs = runs.get(&version.version_pk).copied().unwrap_or(0);
    DagVersion {
        is_current: version.version_pk == row.version_pk,
        dag_id: version.dag_id,
        version: dag_view::narrow(version.version),
        hash: version.content_hash,
        created_at: version.created_at.to_string(),
        runs: u64::try_from(runs).unwrap_or(0),
    }
}

pub(super) async fn version(call: &Call) -> Done {
    let tx = call.read().await?;
    let row = find(&tx, call.arg(0)).await?;
    let number = match call.arg(1) {
        "latest" => Some(row.version),
        text => text.trim_start_matches('v').parse().ok(),
    };
    let found = match number {
        Some(number) => listing::dags::version_of(&tx, &row.dag_id, number).await?,
        None => None,
    };
    let found = found.ok_or_else(|| {
        let text = format!("`{}` has no version `{}`", row.dag_id, call.arg(1));
        Failure::new(ProblemCode::NoSuchVersion, text)
            .suggest(format!("the newest is {}", row.version))
    })?;
    let content = dag::content(&tx, found.version_pk).await?;
    let content = content.ok_or(EngineError::NoVersion(found.version_pk))?;
    let runs = runs_by_version(&tx, &row.dag_id).await?;
    Answer::ok(&DagVersionDetail { version: wire(found, &row, &runs), source: content.source })
}

pub(super) async fn import_errors(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read("import-errors", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let found = listing::dags::import_errors(&tx, &after, limit + 1).await?;
    let (found, next) =
        cursor::cut(found, limit, |(error, _)| cursor::write("import-errors", &[&error.fileloc]));
    let items = found.into_iter().map(|(error, id)| dag_view::import_error(error, id)).collect();
    Answer::ok(&cursor::page(items, next))
}
