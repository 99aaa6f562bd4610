//! The statements, by what they are about: each constant beside its function and its decoder.

pub mod api_token;
pub mod asset;
pub mod attempt;
pub mod attempt_log;
pub mod audit;
pub mod backfill;
pub mod callback;
pub mod checkpoint;
pub mod dag;
pub mod event;
pub mod home;
pub mod idempotency;
pub mod incident;
pub mod installation;
pub mod job;
pub mod lease;
pub mod listing;
pub mod look;
pub mod occasion;
pub mod outbox;
pub mod pool;
pub mod ramp;
pub mod retention;
pub mod run;
pub mod signing_key;
pub mod task_instance;
pub mod trigger;
pub mod vault;
pub mod vitals;
pub mod xcom;

use crate::Stmt;

/// Every statement, for the tests that prepare each on each driver.
pub fn all_statements() -> Vec<Stmt> {
    [
        api_token::STATEMENTS,
        &asset::statements(),
        attempt::statements::STATEMENTS,
        attempt_log::STATEMENTS,
        audit::STATEMENTS,
        backfill::STATEMENTS,
        callback::STATEMENTS,
        checkpoint::STATEMENTS,
        dag::STATEMENTS,
        event::STATEMENTS,
        home::STATEMENTS,
        idempotency::STATEMENTS,
        incident::STATEMENTS,
        installation::STATEMENTS,
        job::STATEMENTS,
        lease::STATEMENTS,
        listing::attempts::STATEMENTS,
        listing::dags::STATEMENTS,
        listing::events::STATEMENTS,
        listing::jobs::STATEMENTS,
        listing::pools::STATEMENTS,
        listing::runs::STATEMENTS,
        listing::tasks::STATEMENTS,
        look::STATEMENTS,
        occasion::STATEMENTS,
        outbox::STATEMENTS,
        pool::STATEMENTS,
        ramp::STATEMENTS,
        &retention::statements(),
        run::STATEMENTS,
        signing_key::STATEMENTS,
        task_instance::STATEMENTS,
        task_instance::expand::STATEMENTS,
        task_instance::deferral::STATEMENTS,
        task_instance::forward::STATEMENTS,
        vault::STATEMENTS,
        trigger::STATEMENTS,
        vitals::STATEMENTS,
        xcom::STATEMENTS,
    ]
    .concat()
}
