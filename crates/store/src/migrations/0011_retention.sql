-- How long the DAG's newest version keeps ended runs; 0: as the installation does; unknown until the
-- version was read.
ALTER TABLE dag ADD COLUMN keep_runs BIGINT;

-- Runs that are gone, whose rows follow in small batches.
CREATE TABLE pruned_run (
    run_pk BIGINT PRIMARY KEY,
    at     BIGINT NOT NULL
);

-- What ended long ago is found without a walk over what did not.
CREATE INDEX run_ended ON run (dag_id, ended_at, run_pk) WHERE ended_at IS NOT NULL;
CREATE INDEX job_ended ON job (ended_at, job_id) WHERE ended_at IS NOT NULL;
CREATE INDEX job_succeeded ON job (succeeded_by) WHERE succeeded_by IS NOT NULL;
-- Who deletes a job asks for the attempts that point to it, as does the database itself.
CREATE INDEX attempt_of_job ON attempt (job_id) WHERE job_id IS NOT NULL;
