//! Mistakes in the dates of a DAG, and in what becomes of its slots.

use crate::mistakes::check;

#[test]
fn dates_and_catchup() {
    check(
        "schedule: '@daily'\ncatchup: true\ntasks: {a: {run: x}}\n",
        &["2:10 error [no-start-date] `catchup: true` without a `start_date` | \
         say from when: start_date: 2026-01-01"],
    );
    check(
        "start_date: 2026-02-01\nend_date: 2026-01-01\ntasks: {a: {run: x}}\n",
        &["2:11 error [bad-date] `end_date` is before `start_date` | \
         `start_date` is 2026-02-01T00:00:00.000Z"],
    );
    check(
        "start_date: 2026-02-30\ncatchup: maybe\noverlap: drop\ntasks: {a: {run: x}}\n",
        &[
            "1:13 error [bad-date] `start_date` must be a date or an instant, \
         not the text `2026-02-30` | write 2026-01-31 or 2026-01-31T05:00:00Z",
            "2:10 error [wrong-type] `catchup` must be true, false or next, not the text `maybe` | ",
            "3:10 error [bad-value] `overlap` cannot be `drop` | \
             one of queue, skip, latest, replace",
        ],
    );
}
