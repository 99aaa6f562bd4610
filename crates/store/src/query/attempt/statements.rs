//! Every statement about attempts, for the tests that prepare each on each driver.

use crate::Stmt;

pub(in crate::query) const STATEMENTS: &[Stmt] = &[
    super::ATTEMPT_INSERT,
    super::ATTEMPT_GET,
    super::ATTEMPT_LOOK,
    super::ATTEMPT_BY_ID,
    super::ATTEMPT_OF_TI,
    super::claim::ATTEMPT_CLAIM,
    super::claim::ATTEMPT_START,
    super::claim::ATTEMPT_UNSTART,
    super::ATTEMPT_END,
    super::ATTEMPT_STOP,
    super::ATTEMPT_HARDEN_STOP,
    super::ATTEMPT_OPEN,
    super::claim::ATTEMPT_HAND_OVER,
    super::left::ATTEMPT_LEFT,
    super::left::ATTEMPT_KEEP_OPEN,
    super::left::ATTEMPT_STOP_OPEN,
    super::ATTEMPT_LEVEL,
    super::ATTEMPT_UNCLAIMED,
    super::ATTEMPT_UNSTARTED,
    super::ATTEMPT_ACTIVE,
    super::ATTEMPT_OF_RUN,
    super::ATTEMPT_IN_HAND,
    super::ATTEMPT_LOCK_IN_HAND,
    super::ATTEMPT_ANY_QUEUED,
];
