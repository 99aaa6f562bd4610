//! `fencepost import`: what other tools schedule, as DAG files and a report.

mod sources;
mod writing;

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use clap::{Args, Subcommand};
use fencepost_core::schedule::Zone;
use fencepost_import::{CronForm, CronOptions, Imported, Source};
use sources::Bytes;
use std::path::{Path, PathBuf};
use writing::Writing;

/// Convert what other tools schedule into DAG files, with a report
#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    /// Crontabs, one DAG per line
    #[command(after_help = "\
Examples:
  crontab -l | fencepost import cron - --to dags/
  fencepost import cron /etc/crontab /etc/cron.d/backup --to dags/ --dry-run
Exit: 2 if something cannot be read, 5 if a file is there already, 9 with --strict if a person is needed")]
    Cron(Cron),
    /// systemd timers with the services that they start, one DAG per timer
    #[command(after_help = "\
Examples:
  fencepost import systemd /etc/systemd/system/backup.timer
  fencepost import systemd units/ --tz Europe/Berlin --to dags/
Exit: 2 if something cannot be read, 5 if a file is there already, 9 with --strict if a person is needed")]
    Systemd(Systemd),
    /// Files of dag-factory (Airflow DAGs in YAML), one DAG per top-level key
    #[command(after_help = "\
Example:
  fencepost import dag-factory dags/*.yml --to dags/
Exit: 2 if something cannot be read, 5 if a file is there already, 9 with --strict if a person is needed")]
    DagFactory(Files),
    /// Workflows of Dagu, one DAG per document
    #[command(after_help = "\
Examples:
  fencepost import dagu etl.yaml
  fencepost import dagu ~/.config/dagu/dags --to dags/
Exit: 2 if something cannot be read, 5 if a file is there already, 9 with --strict if a person is needed")]
    Dagu(Dagu),
}

/// Where the DAG files go.
#[derive(Debug, Args)]
struct Target {
    /// The folder for the DAG files; else a single one is printed
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long)]
    force: bool,
    /// Exit with 9 if something needs a person
    #[arg(long)]
    strict: bool,
}

/// What times without a zone are in.
#[derive(Debug, Args)]
struct InZone {
    /// The time zone of the machine that they are from [default: this machine's]
    #[arg(long = "tz", value_name = "ZONE")]
    zone: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Cron {
    /// Crontabs, or - for stdin
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// Lines name a user, as in /etc/crontab [default: by path, or if the sixth word is root]
    #[arg(long, conflicts_with = "user")]
    system: bool,
    /// Lines name no user, as in `crontab -l`
    #[arg(long)]
    user: bool,
    #[command(flatten)]
    zone: InZone,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Systemd {
    /// Timers (their services lie beside them), or folders of units
    #[arg(required = true, value_name = "UNIT.timer|DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    zone: InZone,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// YAML files, or - for stdin
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Dagu {
    /// Workflows, folders of them, or - for stdin
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    zone: InZone,
    #[command(flatten)]
    target: Target,
}

/// Converts, writes, reports.
pub(super) fn run(cx: &Cx, import: Import) -> Outcome {
    match import {
        Import::Cron(args) => cron(cx, &args),
        Import::Systemd(args) => systemd(cx, &args),
        Import::DagFactory(args) => {
            let imported = each(&sources::read(&args.paths)?, fencepost_import::dag_factory);
            Writing { cx, target: &args.target }.finish(imported)
        }
        Import::Dagu(args) => {
            let zone = args.zone.find(cx)?;
            let files = sources::yaml(&args.paths)?;
            let all: Vec<Source<'_>> = files.iter().map(Bytes::source).collect();
            let imported = fencepost_import::dagu(&all, &zone);
            Writing { cx, target: &args.target }.finish(imported)
        }
    }
}

fn cron(cx: &Cx, args: &Cron) -> Outcome {
    let zone = args.zone.find(cx)?;
    let form = match (args.system, args.user) {
        (true, _) => Some(CronForm::System),
        (_, true) => Some(CronForm::User),
        _ => None,
    };
    let files = sources::read(&args.paths)?;
    let options = CronOptions { zone: &zone, form };
    let imported = each(&files, |source| fencepost_import::cron(source, &options));
    Writing { cx, target: &args.target }.finish(imported)
}

fn systemd(cx: &Cx, args: &Systemd) -> Outcome {
    let zone = args.zone.find(cx)?;
    let mut imported = Imported::default();
    for path in &args.paths {
        let files = sources::units(path)?;
        let all: Vec<Source<'_>> = files.iter().map(Bytes::source).collect();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let only = [name];
        let only = if path.is_dir() { None } else { Some(only.as_slice()) };
        merge(&mut imported, fencepost_import::systemd(&all, only, &zone));
    }
    Writing { cx, target: &args.target }.finish(imported)
}

/// What each file gives, together.
fn each(files: &[Bytes], convert: impl Fn(&Source<'_>) -> Imported) -> Imported {
    let mut all = Imported::default();
    for file in files {
        merge(&mut all, convert(&file.source()));
    }
    all
}

fn merge(all: &mut Imported, more: Imported) {
    all.files.extend(more.files);
    all.notes.extend(more.notes);
}

impl InZone {
    fn find(&self, cx: &Cx) -> Outcome<String> {
        if let Some(zone) = &self.zone {
            return match Zone::get(zone) {
                Some(_) => Ok(zone.clone()),
                None => Err(CliError::usage(format!("unknown time zone `{zone}`"))
                    .hint("write an IANA name, such as Europe/Berlin")),
            };
        }
        let zone = zone_of_machine(Path::new("/etc/localtime"));
        cx.out
            .remark(&format!("times are in {zone}, the zone of this machine (--tz says another)"));
        Ok(zone)
    }
}

/// Where the link of the machine's zone leads to; UTC if that is no zone of ours.
fn zone_of_machine(link: &Path) -> String {
    let target = std::fs::read_link(link).unwrap_or_default();
    let name = target.to_str().and_then(|path| path.split_once("zoneinfo/")).map(|(_, name)| name);
    let known = name.filter(|name| Zone::get(name).is_some());
    known.unwrap_or("UTC").to_owned()
}
