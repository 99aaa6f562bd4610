-- Variables, connections and secrets: sealed by a key that the store has not got.
CREATE TABLE vault (
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    sealed      TEXT NOT NULL,
    updated_at  BIGINT NOT NULL,
    updated_by  TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);
