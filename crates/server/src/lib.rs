//! The server: both APIs over the engine. A server is never an authority: each of its answers
//! follows a committed conditional statement, and nothing is decided from its memory.
//!
//! Deliberately absent: SQL text, decisions, processes.

pub mod auth;
mod body;
pub mod execution;
pub mod metrics;
pub mod render;
pub mod rest;
pub mod tls;
pub mod vault;
