//! What is SQLite's own: settings, group commit, a full disk, plans and their cost.

mod cost;
mod full;
mod group;
mod inline;
mod plans;
mod settings;
