-- The occasions on which somebody is called about it, as bits: known when it is made, so that the
-- transaction that changes its state reads nothing more.
ALTER TABLE run ADD COLUMN calls BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task_instance ADD COLUMN calls BIGINT NOT NULL DEFAULT 0;
-- When somebody is told that it has not finished; null: nobody, or it has been told.
ALTER TABLE run ADD COLUMN alert_at BIGINT;
CREATE INDEX run_alert ON run (alert_at) WHERE alert_at IS NOT NULL AND state IN ('queued', 'running');

-- What happened, written by the transaction in which it did; it becomes callbacks in the next.
CREATE TABLE occasion (
    id         @IDENTITY@,
    at         BIGINT NOT NULL,
    name       TEXT NOT NULL,
    run_pk     BIGINT NOT NULL,
    -- -1: about the run.
    task_index BIGINT NOT NULL,
    map_index  BIGINT NOT NULL,
    token      BIGINT NOT NULL,
    try_number BIGINT NOT NULL,
    reason     TEXT,
    evidence   TEXT
);

-- What is to be told, and whether it was. The id is the receiver's: the same for every repeat.
CREATE TABLE callback (
    id         TEXT PRIMARY KEY,
    dag_id     TEXT NOT NULL,
    run_id     TEXT NOT NULL,
    run_pk     BIGINT NOT NULL,
    task_id    TEXT,
    map_index  BIGINT NOT NULL,
    token      BIGINT NOT NULL,
    occasion   TEXT NOT NULL,
    kind       TEXT NOT NULL,
    -- Whose slowness it shares.
    target     TEXT NOT NULL,
    -- Rendered, as JSON; of one that could not be rendered as it was written.
    spec       TEXT NOT NULL,
    -- What happened, as JSON: a webhook's body unless it has its own.
    told       TEXT NOT NULL,
    -- due, delivered, dead
    state      TEXT NOT NULL,
    tries      BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    -- From when on its age counts: it was made, or a person asked for another round.
    since_at   BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,
    ended_at   BIGINT,
    last_error TEXT
);
CREATE INDEX callback_due ON callback (target, due_at, id) WHERE state = 'due';
CREATE INDEX callback_next ON callback (due_at) WHERE state = 'due';
CREATE INDEX callback_state ON callback (state, id);
CREATE INDEX callback_ended ON callback (ended_at) WHERE ended_at IS NOT NULL;
