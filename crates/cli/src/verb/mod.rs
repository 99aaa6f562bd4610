//! The verbs, one file each. A verb reads its arguments, calls the server or reads files, prints,
//! and says with which code the process ends.

mod assets;
mod attempts;
mod backfill;
mod callbacks;
mod completion;
mod config;
mod connections;
mod context;
mod dags;
mod db;
mod defer;
mod demo;
mod doctor;
mod events;
mod explain;
mod fence;
mod health;
mod held;
mod import;
mod incidents;
mod init;
mod inspect;
mod kept;
mod logs;
mod look;
mod own_attempt;
mod plan;
mod pools;
mod ps;
mod role;
mod run;
mod runs;
mod schedule;
mod scheduler;
mod schema;
mod secrets;
mod server;
mod standalone;
mod target;
mod tasks;
mod tokens;
mod triggerer;
mod validate;
mod variables;
mod version;
mod worker;
mod workers;
mod xcom;

use crate::cx::Cx;
use crate::error::Outcome;
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Init(init::Init),
    Standalone(standalone::Standalone),
    Server(server::Server),
    Scheduler(scheduler::Scheduler),
    Triggerer(triggerer::Triggerer),
    Worker(worker::Worker),
    Run(run::RunFile),
    #[command(subcommand)]
    Demo(demo::Demo),
    Validate(validate::Validate),
    #[command(subcommand)]
    Import(import::Import),
    #[command(subcommand)]
    Dags(dags::Dags),
    #[command(subcommand)]
    Runs(runs::Runs),
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    #[command(subcommand)]
    Attempts(attempts::Attempts),
    #[command(subcommand)]
    Assets(assets::Assets),
    #[command(subcommand, name = "backfill")]
    Backfill(backfill::Backfills),
    #[command(subcommand)]
    Incidents(incidents::Incidents),
    #[command(subcommand)]
    Held(held::Held),
    #[command(subcommand)]
    Callbacks(callbacks::Callbacks),
    Logs(logs::Logs),
    Explain(explain::ExplainArgs),
    Ps(ps::Ps),
    Events(events::Events),
    #[command(subcommand)]
    Workers(workers::Workers),
    Inspect(inspect::InspectArgs),
    #[command(subcommand)]
    Pools(pools::Pools),
    #[command(subcommand)]
    Variables(variables::Variables),
    #[command(subcommand)]
    Connections(connections::Connections),
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Context(context::ContextVerb),
    #[command(subcommand)]
    Db(db::Db),
    #[command(subcommand)]
    Schema(schema::Schemas),
    #[command(subcommand)]
    Schedule(schedule::Schedules),
    Doctor(doctor::DoctorArgs),
    Health(health::HealthArgs),
    #[command(subcommand)]
    Tokens(tokens::Tokens),
    Defer(defer::Defer),
    #[command(subcommand)]
    Fence(fence::Fence),
    #[command(subcommand)]
    Xcom(xcom::Xcom),
    Completion(completion::Completion),
    Version(version::VersionArgs),
}

impl Verb {
    /// Does it.
    pub(crate) fn run(self, cx: &Cx) -> Outcome {
        match self {
            Self::Init(args) => init::run(cx, args),
            Self::Standalone(args) => standalone::run(cx, args),
            Self::Server(args) => server::run(cx, args),
            Self::Scheduler(args) => scheduler::run(cx, args),
            Self::Triggerer(args) => triggerer::run(cx, args),
            Self::Worker(args) => worker::run(cx, args),
            Self::Run(args) => run::run_file(cx, args),
            Self::Demo(args) => demo::run(cx, &args),
            Self::Validate(args) => validate::run(cx, args),
            Self::Import(args) => import::run(cx, args),
            Self::Dags(args) => dags::run(cx, args),
            Self::Runs(args) => runs::run(cx, args),
            Self::Tasks(args) => tasks::run(cx, args),
            Self::Attempts(args) => attempts::run(cx, args),
            Self::Assets(args) => assets::run(cx, args),
            Self::Backfill(args) => backfill::run(cx, args),
            Self::Callbacks(verb) => callbacks::run(cx, verb),
            Self::Incidents(args) => incidents::run(cx, args),
            Self::Held(args) => held::run(cx, args),
            Self::Logs(args) => logs::run(cx, args),
            Self::Explain(args) => explain::run(cx, args),
            Self::Ps(args) => ps::run(cx, args),
            Self::Events(args) => events::run(cx, args),
            Self::Workers(args) => workers::run(cx, args),
            Self::Inspect(args) => inspect::run(cx, &args),
            Self::Pools(args) => pools::run(cx, args),
            Self::Variables(args) => variables::run(cx, args),
            Self::Connections(args) => connections::run(cx, args),
            Self::Secrets(args) => secrets::run(cx, args),
            Self::Config(args) => config::run(cx, args),
            Self::Context(args) => context::run(cx, args),
            Self::Db(args) => db::run(cx, args),
            Self::Schema(args) => schema::run(cx, args),
            Self::Schedule(args) => schedule::run(cx, args),
            Self::Doctor(args) => doctor::run(cx, &args),
            Self::Health(args) => health::run(cx, args),
            Self::Tokens(args) => tokens::run(cx, args),
            Self::Defer(args) => defer::run(cx, args),
            Self::Fence(args) => fence::run(cx, &args),
            Self::Xcom(args) => xcom::run(cx, args),
            Self::Completion(args) => completion::run(cx, args),
            Self::Version(args) => version::run(cx, args),
        }
    }
}
