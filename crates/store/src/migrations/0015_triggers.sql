-- What a deferred task instance waits for: one row, from the transaction that defers it to the one that
-- takes it out of `deferred`.
CREATE TABLE trigger (
    -- Of the attempt that was deferred.
    token       BIGINT PRIMARY KEY,
    run_pk      BIGINT NOT NULL,
    task_index  BIGINT NOT NULL,
    map_index   BIGINT NOT NULL,
    dag_id      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    -- The wait as JSON, rendered; and what its looks remember.
    wait        TEXT NOT NULL,
    memory      TEXT NOT NULL,
    -- 1: a process resumes; 0: the event is the instance's result.
    resumes     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    -- When a timer of it falls due: its own instant, or the end of its patience.
    due_at      BIGINT,
    deadline_at BIGINT,
    -- When its triggerer looks again; null if nobody has to.
    next_at     BIGINT,
    -- The triggerer that looks; empty: none yet.
    job_id      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX trigger_due ON trigger (due_at, token) WHERE due_at IS NOT NULL;
CREATE INDEX trigger_owner ON trigger (job_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX trigger_of_ti ON trigger (run_pk, task_index, map_index);

-- When a try was deferred first, and which try that was (`try_number` + `clears`, which only rises).
ALTER TABLE task_instance ADD COLUMN deferred_since BIGINT;
ALTER TABLE task_instance ADD COLUMN deferred_era BIGINT NOT NULL DEFAULT -1;
-- What the resumed process of that try is told, as JSON.
ALTER TABLE task_instance ADD COLUMN trigger_event TEXT;
