-- Column types are those that both databases share: BIGINT (also for 0/1), TEXT. Times are
-- microseconds since 1970 by the store's clock; tokens are 63-bit numbers, 0 for none; JSON is TEXT.

CREATE TABLE installation (
    one             BIGINT PRIMARY KEY CHECK (one = 1),
    installation_id TEXT NOT NULL,
    epoch           BIGINT NOT NULL,
    counter         BIGINT NOT NULL,
    created_at      BIGINT NOT NULL
);

-- One row a process for its life.
CREATE TABLE job (
    job_id       TEXT PRIMARY KEY,
    kind         TEXT NOT NULL,
    state        TEXT NOT NULL,
    name         TEXT NOT NULL,
    host         TEXT NOT NULL,
    pid          BIGINT NOT NULL,
    pid_start    BIGINT NOT NULL,
    boot_id      TEXT NOT NULL,
    machine_id   TEXT NOT NULL,
    home_id      TEXT NOT NULL,
    version      TEXT NOT NULL,
    queues       TEXT NOT NULL,
    slots        BIGINT NOT NULL,
    lease_ttl    BIGINT,
    renew_seq    BIGINT NOT NULL,
    renewed_at   BIGINT NOT NULL,
    started_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    succeeded_by TEXT,
    detached     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX job_live ON job (kind, home_id) WHERE state IN ('running', 'draining');

CREATE TABLE dag (
    dag_id       TEXT PRIMARY KEY,
    version      BIGINT NOT NULL,
    version_pk   BIGINT NOT NULL,
    is_paused    BIGINT NOT NULL,
    is_active    BIGINT NOT NULL,
    fileloc      TEXT NOT NULL,
    owner        TEXT NOT NULL,
    tags         TEXT NOT NULL,
    description  TEXT NOT NULL,
    schedule     TEXT NOT NULL,
    max_active_runs  BIGINT NOT NULL,
    max_active_tasks BIGINT NOT NULL,
    -- The schedule's place: the newest slot that was handled, and when the next one is due.
    slot_cursor  BIGINT,
    next_slot_at BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    paused_by    TEXT
);
CREATE INDEX dag_due ON dag (next_slot_at) WHERE is_active = 1 AND is_paused = 0 AND next_slot_at IS NOT NULL;

CREATE TABLE dag_version (
    version_pk   @IDENTITY@,
    dag_id       TEXT NOT NULL,
    version      BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    ir           TEXT NOT NULL,
    source       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    UNIQUE (dag_id, version)
);

CREATE TABLE import_error (
    fileloc TEXT PRIMARY KEY,
    errors  TEXT NOT NULL,
    at      BIGINT NOT NULL
);

CREATE TABLE pool (
    name        TEXT PRIMARY KEY,
    slots       BIGINT NOT NULL,
    description TEXT NOT NULL,
    -- Made smaller than what was held: the excess drains by itself.
    shrunk      BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE run (
    run_pk         @IDENTITY@,
    dag_id         TEXT NOT NULL,
    run_id         TEXT NOT NULL,
    version_pk     BIGINT NOT NULL,
    run_type       TEXT NOT NULL,
    state          TEXT NOT NULL,
    paused         BIGINT NOT NULL DEFAULT 0,
    logical_date   BIGINT,
    interval_start BIGINT,
    interval_end   BIGINT,
    run_after      BIGINT NOT NULL,
    conf           TEXT NOT NULL,
    params         TEXT NOT NULL,
    note           TEXT,
    triggered_by   TEXT NOT NULL,
    -- Instances whose end is not counted yet; 0 ends the run.
    unfinished     BIGINT NOT NULL DEFAULT 0,
    made           BIGINT NOT NULL DEFAULT 0,
    deadline_at    BIGINT,
    stop_reason    TEXT,
    stop_by        TEXT,
    created_at     BIGINT NOT NULL,
    started_at     BIGINT,
    ended_at       BIGINT,
    reason         TEXT,
    UNIQUE (dag_id, run_id)
);
-- With the state as a column they fit better than run_of_dag, which holds the whole history.
CREATE INDEX run_queued ON run (state, dag_id, run_after, run_pk) WHERE state = 'queued';
CREATE INDEX run_active ON run (state, dag_id, run_after) WHERE state = 'running';
CREATE INDEX run_deadline ON run (state, deadline_at) WHERE state = 'running' AND deadline_at IS NOT NULL;
CREATE INDEX run_of_dag ON run (dag_id, run_after, run_pk);
CREATE INDEX run_by_date ON run (dag_id, logical_date) WHERE logical_date IS NOT NULL;

CREATE TABLE task_instance (
    run_pk        BIGINT NOT NULL,
    task_index    BIGINT NOT NULL,
    map_index     BIGINT NOT NULL,
    task_id       TEXT NOT NULL,
    dag_id        TEXT NOT NULL,
    state         TEXT NOT NULL,
    token         BIGINT NOT NULL DEFAULT 0,
    try_number    BIGINT NOT NULL DEFAULT 1,
    max_tries     BIGINT NOT NULL,
    attempts      BIGINT NOT NULL DEFAULT 0,
    infra_losses  BIGINT NOT NULL DEFAULT 0,
    single_deaths BIGINT NOT NULL DEFAULT 0,
    requeues      BIGINT NOT NULL DEFAULT 0,
    clears        BIGINT NOT NULL DEFAULT 0,
    generation    BIGINT NOT NULL DEFAULT 0,
    pool          TEXT NOT NULL,
    pool_slots    BIGINT NOT NULL,
    priority      BIGINT NOT NULL,
    -- The counts of the task's upstreams, on its head (lowest map index) only.
    up_total           BIGINT NOT NULL,
    up_success         BIGINT NOT NULL DEFAULT 0,
    up_failed          BIGINT NOT NULL DEFAULT 0,
    up_skipped         BIGINT NOT NULL DEFAULT 0,
    up_upstream_failed BIGINT NOT NULL DEFAULT 0,
    up_removed         BIGINT NOT NULL DEFAULT 0,
    -- Ended, and not counted downstream yet.
    forward_due   BIGINT NOT NULL DEFAULT 0,
    -- On a head: 1: decide it again in the next pass; 2: it waits for the previous run's instance.
    recheck       BIGINT NOT NULL DEFAULT 0,
    retry_at      BIGINT,
    -- How the next attempt is explained: a word of `why`, and what it replaces.
    next_why      TEXT NOT NULL DEFAULT 'first',
    prev_outcome  TEXT NOT NULL DEFAULT 'first',
    reason        TEXT,
    -- The last checkpoint of its attempts, in hexadecimal.
    checkpoint    TEXT,
    scheduled_at  BIGINT,
    queued_at     BIGINT,
    started_at    BIGINT,
    ended_at      BIGINT,
    PRIMARY KEY (run_pk, task_index, map_index)
);
CREATE INDEX ti_scheduled ON task_instance (dag_id, pool, priority DESC, run_pk, task_index, map_index) WHERE state = 'scheduled';
CREATE INDEX ti_forward ON task_instance (run_pk, task_index, map_index) WHERE forward_due = 1;
CREATE INDEX ti_recheck ON task_instance (recheck, run_pk, task_index) WHERE recheck > 0;
CREATE INDEX ti_retry ON task_instance (retry_at) WHERE state = 'up_for_retry';
CREATE INDEX ti_held ON task_instance (run_pk) WHERE state = 'held';

-- One row for every dispatch ever made.
CREATE TABLE attempt (
    token          BIGINT PRIMARY KEY,
    attempt_id     TEXT NOT NULL UNIQUE,
    run_pk         BIGINT NOT NULL,
    task_index     BIGINT NOT NULL,
    map_index      BIGINT NOT NULL,
    dag_id         TEXT NOT NULL,
    try_number     BIGINT NOT NULL,
    attempt_number BIGINT NOT NULL,
    state          TEXT NOT NULL,
    outcome        TEXT,
    why            TEXT NOT NULL,
    replaces       BIGINT NOT NULL DEFAULT 0,
    prev_outcome   TEXT NOT NULL,
    queue          TEXT NOT NULL,
    priority       BIGINT NOT NULL,
    queued_until   BIGINT NOT NULL,
    job_id         TEXT REFERENCES job (job_id),
    worker         TEXT,
    host           TEXT,
    containment    TEXT,
    start_id       TEXT,
    boot_id        TEXT,
    queued_at      BIGINT NOT NULL,
    claimed_at     BIGINT,
    started_at     BIGINT,
    ended_at       BIGINT,
    stop_reason    TEXT,
    stop_by        TEXT,
    stop_at        BIGINT,
    stop_mark      TEXT,
    reason         TEXT,
    message        TEXT,
    exit_code      BIGINT,
    signal         BIGINT,
    counted_as     TEXT,
    evidence       TEXT,
    report_digest  TEXT
);
CREATE INDEX attempt_queued ON attempt (queue, priority DESC, token) WHERE state = 'queued';
CREATE INDEX attempt_open ON attempt (job_id, token) WHERE state IN ('claimed', 'running', 'stopping', 'lost_open');
CREATE INDEX attempt_unstarted ON attempt (claimed_at) WHERE state = 'claimed';
CREATE INDEX attempt_of_ti ON attempt (run_pk, task_index, map_index, token);

-- What an active attempt holds; a row, never a counter.
CREATE TABLE hold (
    token      BIGINT PRIMARY KEY,
    pool       TEXT NOT NULL,
    slots      BIGINT NOT NULL,
    dag_id     TEXT NOT NULL,
    run_pk     BIGINT NOT NULL,
    task_index BIGINT NOT NULL
);
CREATE INDEX hold_pool ON hold (pool);
CREATE INDEX hold_run ON hold (run_pk);

CREATE TABLE xcom (
    run_pk     BIGINT NOT NULL,
    task_index BIGINT NOT NULL,
    map_index  BIGINT NOT NULL,
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,
    token      BIGINT NOT NULL,
    PRIMARY KEY (run_pk, task_index, name, map_index)
);

-- The transition log: append-only.
CREATE TABLE event (
    seq        @IDENTITY@,
    at         BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    dag_id     TEXT,
    run_pk     BIGINT,
    task_id    TEXT,
    map_index  BIGINT,
    token      BIGINT NOT NULL DEFAULT 0,
    actor      TEXT NOT NULL,
    from_state TEXT,
    to_state   TEXT,
    reason     TEXT,
    evidence   TEXT
);
CREATE INDEX event_of_run ON event (run_pk, seq);
CREATE INDEX event_of_attempt ON event (token, seq) WHERE token > 0;

-- Effects to carry out after the commit that wrote them, at least once.
CREATE TABLE outbox (
    id         @IDENTITY@,
    kind       TEXT NOT NULL,
    payload    TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,
    tries      BIGINT NOT NULL DEFAULT 0,
    last_error TEXT
);
CREATE INDEX outbox_due ON outbox (due_at, id) WHERE state = 'due';

CREATE TABLE api_token (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    created_by TEXT NOT NULL
);

-- Answers to POSTs with an Idempotency-Key, kept for a day.
CREATE TABLE idempotency (
    key     TEXT PRIMARY KEY,
    digest  TEXT NOT NULL,
    status  BIGINT NOT NULL,
    body    TEXT NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX idempotency_age ON idempotency (at);
