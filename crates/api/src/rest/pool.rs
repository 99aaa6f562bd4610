//! Pools.

use serde::{Deserialize, Serialize};

/// One pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub name: String,
    pub slots: u32,
    pub description: String,
    /// Slots held by attempts that run or may still run.
    pub used_slots: u32,
    /// Task instances that wait for a slot.
    pub waiting: u32,
}

/// `PUT /pools/{name}`: makes or changes one; fields that are null stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolPut {
    /// Must be there for a new pool.
    pub slots: Option<u32>,
    pub description: Option<String>,
}
