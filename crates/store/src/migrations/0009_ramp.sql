-- Recovered work comes back by a ramp, one per pool that has any.
CREATE TABLE ramp (
    pool    TEXT PRIMARY KEY,
    -- Thousandths of a start a second.
    rate    BIGINT NOT NULL,
    -- When the next start may go.
    free_at BIGINT NOT NULL,
    -- Starts that have succeeded since the rate changed.
    good    BIGINT NOT NULL
);

-- The pool whose ramp lets the attempt go; '': none.
ALTER TABLE attempt ADD COLUMN ramp TEXT NOT NULL DEFAULT '';
-- Fresh work and each ramp's are apart in it, and all of them are one short index.
DROP INDEX attempt_queued;
CREATE INDEX attempt_queued ON attempt (ramp, queue, priority DESC, token) WHERE state = 'queued';
