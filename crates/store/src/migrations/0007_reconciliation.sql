-- The number of the worker's call that claimed the attempt, started it or took it over: an inventory
-- that is older says nothing about it.
ALTER TABLE attempt ADD COLUMN call BIGINT NOT NULL DEFAULT 0;
-- Since when a successor owes its answer about an attempt that was handed over to it.
ALTER TABLE attempt ADD COLUMN handed_over_at BIGINT;
-- When its worker was first asked what became of it.
ALTER TABLE attempt ADD COLUMN asked_at BIGINT;
-- The epoch in which everybody has reconciled: in a later one nothing is dispatched, claimed or started.
ALTER TABLE installation ADD COLUMN reconciled BIGINT NOT NULL DEFAULT 1;
-- When the epoch began.
ALTER TABLE installation ADD COLUMN epoch_at BIGINT NOT NULL DEFAULT 0;
UPDATE installation SET reconciled = epoch;
