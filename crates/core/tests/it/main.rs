//! The tests of the core: exhaustive tables and properties against independent expectations.

mod assets;
mod audit;
mod budgets;
mod callbacks;
mod connections;
mod dag_graph;
mod http_tasks;
mod inputs;
mod inventories;
mod lifecycle;
mod liveness;
mod matrix;
mod names;
mod plans;
mod schedule_oracle;
mod schedule_reference;
mod schedule_slots;
mod state_machines_page;
mod trigger_rule_oracle;
mod verdict;
