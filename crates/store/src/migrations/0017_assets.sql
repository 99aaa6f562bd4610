-- Which DAGs and tasks name an asset, as their newest versions do: `consumer` (a schedule; no task),
-- `producer` (an outlet of a task), `inlet`.
CREATE TABLE asset_use (
    asset   TEXT NOT NULL,
    role    TEXT NOT NULL,
    dag_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (asset, role, dag_id, task_id)
);
CREATE INDEX asset_use_of_dag ON asset_use (dag_id, role, asset);

-- That an asset has something new: by a task that succeeded, or by a person.
CREATE TABLE asset_event (
    event_pk       @IDENTITY@,
    asset          TEXT NOT NULL,
    at             BIGINT NOT NULL,
    dag_id         TEXT NOT NULL,
    run_id         TEXT NOT NULL,
    task_id        TEXT NOT NULL,
    map_index      BIGINT NOT NULL,
    token          BIGINT NOT NULL,
    emitted_by     TEXT NOT NULL,
    -- Of the run that produced it; without one, the instant of the event.
    interval_start BIGINT NOT NULL,
    interval_end   BIGINT NOT NULL,
    extra          TEXT NOT NULL
);
CREATE INDEX asset_event_of_asset ON asset_event (asset, event_pk);
CREATE INDEX asset_event_age ON asset_event (at);

-- An event for each DAG whose schedule named its asset when it was emitted: `run_pk` is null until a
-- run of that DAG takes it, once and for ever.
CREATE TABLE asset_queue (
    event_pk BIGINT NOT NULL,
    dag_id   TEXT NOT NULL,
    asset    TEXT NOT NULL,
    run_pk   BIGINT,
    PRIMARY KEY (event_pk, dag_id)
);
CREATE INDEX asset_queue_waiting ON asset_queue (dag_id, asset) WHERE run_pk IS NULL;
CREATE INDEX asset_queue_of_run ON asset_queue (run_pk, event_pk) WHERE run_pk IS NOT NULL;
