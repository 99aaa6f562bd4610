//! The writer's thread and its group commit.
//!
//! The sessions that wait for the writer share one SQLite transaction, each behind a savepoint, and
//! are committed together: one sync of the disk for the group. A session is answered only after
//! that sync, so what it was told is durable.
//!
//! Some errors (a full disk, an IO error) make SQLite roll back the whole transaction at once, also
//! what earlier sessions of the group released into it. Then nothing more may run under the group's
//! name, since it would be committed by itself, statement for statement; and every member is told
//! that it is not kept. The same holds if a session's changes cannot be taken out of the group.

use super::{Command, IDLE_MAX, Opening, Reply, ended, run, wrong};
use crate::error::StoreError;
use rusqlite::Connection;
use std::sync::mpsc::Receiver;

/// Sessions that share one commit at most, whether they commit or leave.
const GROUP_MAX: usize = 64;

/// How a session ended.
enum Served {
    /// It wants to be committed: the group's sync answers.
    Commits(&'static str, Reply<()>),
    /// Nothing of it is left.
    Left,
    /// It took the whole group with it.
    GroupLost(StoreError),
}

/// Serves sessions until the last handle of the store is gone.
pub(super) fn serve(connection: &Connection, queue: &Receiver<Opening>) {
    while let Ok(first) = queue.recv() {
        match connection.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => serve_group(connection, queue, first),
            // Nobody waits for a reply that cannot be sent; so below.
            Err(error) => drop(first.reply.send(Err(wrong(first.op, &error)))),
        }
    }
}

fn serve_group(connection: &Connection, queue: &Receiver<Opening>, first: Opening) {
    let mut group: Vec<(&'static str, Reply<()>)> = Vec::new();
    let mut lost: Option<StoreError> = None;
    let mut next = Some(first);
    let mut served = 0;
    while let Some(opening) = next.take() {
        match serve_session(connection, opening) {
            Served::Commits(op, reply) => group.push((op, reply)),
            Served::Left => {}
            Served::GroupLost(cause) => lost = Some(cause),
        }
        served += 1;
        if served < GROUP_MAX && lost.is_none() {
            next = queue.try_recv().ok();
        }
    }
    finish(connection, group, lost);
}

/// Commits for all sessions of a group, and tells each.
fn finish(
    connection: &Connection,
    group: Vec<(&'static str, Reply<()>)>,
    lost: Option<StoreError>,
) {
    let result = match lost {
        Some(cause) => Err(cause),
        None => connection.execute_batch("COMMIT").map_err(|error| wrong("commit", &error)),
    };
    if result.is_err() && !connection.is_autocommit() {
        // A failed COMMIT may leave the transaction open. If this fails too, the next BEGIN does.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for (op, reply) in group {
        let answer = result.clone().map_err(|cause| {
            let message = format!("rolled back with its group: {}", cause.message);
            StoreError::new(cause.kind, op, message)
        });
        let _ = reply.send(answer);
    }
}

fn serve_session(connection: &Connection, opening: Opening) -> Served {
    let op = opening.op;
    if let Err(error) = connection.execute_batch("SAVEPOINT session") {
        let error = wrong(op, &error);
        let _ = opening.reply.send(Err(error.clone()));
        let is_over = connection.is_autocommit();
        return if is_over { Served::GroupLost(error) } else { Served::Left };
    }
    let mut failed: Option<StoreError> = None;
    if opening.reply.send(Ok(())).is_ok() {
        while let Ok(command) = opening.commands.recv_timeout(IDLE_MAX) {
            match command {
                Command::Run { op, stmt, sets, reply } => {
                    let answer = match &failed {
                        Some(first) => Err(ended(op, first)),
                        None => run(connection, op, stmt, &sets),
                    };
                    if let (Err(error), None) = (&answer, &failed) {
                        failed = Some(error.clone());
                    }
                    let _ = reply.send(answer);
                }
                Command::Commit { op, reply } => match release(connection, op, failed.as_ref()) {
                    Ok(()) => return Served::Commits(op, reply),
                    Err(error) => {
                        failed.get_or_insert_with(|| error.clone());
                        let _ = reply.send(Err(error));
                        break;
                    }
                },
            }
        }
    }
    undo(connection, op, failed)
}

fn release(
    connection: &Connection,
    op: &'static str,
    failed: Option<&StoreError>,
) -> Result<(), StoreError> {
    match failed {
        Some(first) => Err(ended(op, first)),
        None => connection.execute_batch("RELEASE session").map_err(|error| wrong(op, &error)),
    }
}

/// Takes a session's changes out of the group.
fn undo(connection: &Connection, op: &'static str, failed: Option<StoreError>) -> Served {
    match connection.execute_batch("ROLLBACK TO session; RELEASE session") {
        Ok(()) => Served::Left,
        Err(error) => Served::GroupLost(failed.unwrap_or_else(|| wrong(op, &error))),
    }
}
