-- 1: a person took an ended worker off the lists.
ALTER TABLE job ADD COLUMN removed BIGINT NOT NULL DEFAULT 0;
