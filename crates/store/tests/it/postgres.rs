//! What is PostgreSQL's own: that it takes every statement, migrations, guards, hints, two sessions
//! at once.

mod epochs;
mod hints;
mod opening;
mod plans;
mod pooler;
mod prepare;
