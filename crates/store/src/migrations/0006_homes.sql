-- Who registered last in a home of workers: a registration that comes after a later one is refused.
CREATE TABLE home (
    home_id      TEXT PRIMARY KEY,
    -- The number of that registration, as counted in the home itself.
    registration BIGINT NOT NULL,
    job_id       TEXT NOT NULL
);
