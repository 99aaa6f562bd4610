//! Pure plans: from rows and `now` to what must be written. The engine carries them out.

pub mod backfill;
pub mod dispatch;
pub mod forward;
pub mod rollup;
pub mod runs;
