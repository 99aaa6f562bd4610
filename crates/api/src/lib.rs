//! Wire types of both APIs and the codes of their problems. Data only: no IO, no decisions, and
//! nothing of the other crates, so that foreign clients and servers can be written against it.

pub mod execution;
pub mod problem;
pub mod rest;
