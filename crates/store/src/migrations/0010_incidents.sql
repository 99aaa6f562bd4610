-- An incident is closed once nothing of it is open, or by a person.
ALTER TABLE incident ADD COLUMN closed_at BIGINT;
ALTER TABLE incident ADD COLUMN closed_by TEXT;
ALTER TABLE incident ADD COLUMN close_reason TEXT;
UPDATE incident SET closed_at = settled_at, closed_by = 'migration' WHERE settled_at IS NOT NULL;
CREATE INDEX incident_open ON incident (id) WHERE closed_at IS NULL;

-- The incident in which it was lost.
ALTER TABLE attempt ADD COLUMN incident BIGINT;
CREATE INDEX attempt_incident ON attempt (incident, token) WHERE incident IS NOT NULL;
-- 1: it has ended, and nobody knows whether its processes have.
ALTER TABLE attempt ADD COLUMN may_run BIGINT NOT NULL DEFAULT 0;
CREATE INDEX attempt_may_run ON attempt (token) WHERE may_run = 1;

-- When it was used last, to some minutes.
ALTER TABLE api_token ADD COLUMN used_at BIGINT;
