-- The epoch in which a job registered, or reconciled last.
ALTER TABLE job ADD COLUMN epoch BIGINT NOT NULL DEFAULT 1;
-- The age of its main loop's last turn, as its last beat said; microseconds.
ALTER TABLE job ADD COLUMN loop_age BIGINT NOT NULL DEFAULT 0;
-- Of a lost one: how it died, and how that is known.
ALTER TABLE job ADD COLUMN death TEXT;
ALTER TABLE job ADD COLUMN evidence TEXT;
-- 1: attempts that it claimed are still to be worked off.
ALTER TABLE job ADD COLUMN pages BIGINT NOT NULL DEFAULT 0;
CREATE INDEX job_pages ON job (job_id) WHERE pages = 1;
CREATE INDEX job_detached ON job (job_id) WHERE state = 'stopped' AND detached = 1 AND succeeded_by IS NULL;
-- Renewals are updates in place: room beside the rows, and no index on what they change.
-- @POSTGRES@ ALTER TABLE job SET (fillfactor = 50);

-- One row for every job that was declared lost.
CREATE TABLE incident (
    id          @IDENTITY@,
    kind        TEXT NOT NULL,
    job_id      TEXT NOT NULL UNIQUE,
    at          BIGINT NOT NULL,
    declared_by TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    -- Attempts that were worked off so far.
    attempts    BIGINT NOT NULL DEFAULT 0,
    -- When the last of them was.
    settled_at  BIGINT
);
