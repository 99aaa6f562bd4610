-- Backfills: the slots of a range, with a limit of their own. At most one of a DAG is under way.
CREATE TABLE backfill (
    backfill_pk     @IDENTITY@,
    dag_id          TEXT NOT NULL,
    -- What its slots are, and what its new runs are of: fixed when it is made.
    version_pk      BIGINT NOT NULL,
    state           TEXT NOT NULL,
    paused          BIGINT NOT NULL DEFAULT 0,
    from_date       BIGINT NOT NULL,
    to_date         BIGINT NOT NULL,
    reprocess       TEXT NOT NULL,
    max_active_runs BIGINT NOT NULL,
    backwards       BIGINT NOT NULL,
    params          TEXT NOT NULL,
    conf            TEXT NOT NULL,
    slots           BIGINT NOT NULL,
    -- Its place: when the last slot that was handled was due, and whether that was the last.
    place           BIGINT,
    planned         BIGINT NOT NULL DEFAULT 0,
    created_at      BIGINT NOT NULL,
    created_by      TEXT NOT NULL,
    stopped_by      TEXT,
    ended_at        BIGINT
);
CREATE UNIQUE INDEX backfill_active ON backfill (dag_id) WHERE state IN ('running', 'cancelling');

-- What was done with each slot.
CREATE TABLE backfill_slot (
    backfill_pk  BIGINT NOT NULL,
    logical_date BIGINT NOT NULL,
    action       TEXT NOT NULL,
    run_pk       BIGINT NOT NULL,
    PRIMARY KEY (backfill_pk, logical_date)
);

-- Whose limit a run counts in: a backfill's, or (null) its DAG's. A run that is cleared by a person
-- counts in its DAG's again.
ALTER TABLE run ADD COLUMN backfill_pk BIGINT;
CREATE INDEX run_of_backfill ON run (backfill_pk, state, logical_date)
    WHERE backfill_pk IS NOT NULL AND state IN ('queued', 'running');
