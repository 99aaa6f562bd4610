-- The mart of the flights example. Each table is written by one task, a day at a time.
CREATE TABLE IF NOT EXISTS fence (
  resource TEXT PRIMARY KEY,          -- e.g. flight/2001-01-05: what one task instance overwrites
  token    INTEGER NOT NULL           -- the newest attempt that wrote it
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS flight (   -- task load
  day         TEXT NOT NULL,
  at          TEXT NOT NULL,          -- local time of departure, HH:MM
  hour        INTEGER NOT NULL,
  delay       INTEGER NOT NULL,       -- minutes; below 0: early
  late        INTEGER NOT NULL,       -- 1 from params.late_minutes on
  distance    INTEGER NOT NULL,       -- miles
  origin      TEXT NOT NULL,
  destination TEXT NOT NULL,
  region      TEXT NOT NULL           -- of the origin
);
CREATE INDEX IF NOT EXISTS flight_day ON flight (day, region);

CREATE TABLE IF NOT EXISTS region_day ( -- task region, one row per task instance
  day      TEXT NOT NULL,
  region   TEXT NOT NULL,
  flights  INTEGER NOT NULL,
  delay    INTEGER NOT NULL,
  distance INTEGER NOT NULL,
  late     INTEGER NOT NULL,
  PRIMARY KEY (day, region)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS day (      -- task summary: days that are complete
  day      TEXT PRIMARY KEY,
  flights  INTEGER NOT NULL,
  delay    INTEGER NOT NULL,
  distance INTEGER NOT NULL,
  late     INTEGER NOT NULL,
  run_id   TEXT NOT NULL,
  attempt  INTEGER NOT NULL,          -- attempt number of the summary that wrote this row
  token    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS worst (    -- task worst_delays: bad days only
  day    TEXT NOT NULL,
  rank   INTEGER NOT NULL,
  at     TEXT NOT NULL,
  origin TEXT NOT NULL,
  destination TEXT NOT NULL,
  delay  INTEGER NOT NULL,
  PRIMARY KEY (day, rank)
) WITHOUT ROWID;
