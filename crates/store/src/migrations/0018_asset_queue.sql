-- The oldest events of one asset of a long queue, and the first event of an asset since an instant.
DROP INDEX asset_queue_waiting;
CREATE INDEX asset_queue_waiting ON asset_queue (dag_id, asset, event_pk) WHERE run_pk IS NULL;
CREATE INDEX asset_event_since ON asset_event (asset, at, event_pk);
