# Sourced after place.sh: the mart, a SQLite file that all days share.
# Readers and one writer at a time (WAL, a generous busy time-out); a day's part is replaced whole.
# shellcheck shell=bash

# Run the SQL on standard input. The first error ends it, and an open transaction is rolled back.
mart() { sqlite3 -batch -bail -cmd '.timeout 120000' "$@" "$mart"; }

# Make the tables if they are not there. Under a lock, because the switch to WAL wants the file for itself.
mart_ready() {
  (
    flock 9
    { echo 'PRAGMA journal_mode = WAL;'; cat "$FLIGHTS_CODE/mart.sql"; } | mart > /dev/null
  ) 9> "$locks/mart"
}

# mart_replace RESOURCE < SQL: the statements in one transaction, behind a fence. The transaction first
# raises the fence of RESOURCE to this attempt's fencing token; if a newer attempt has been there, the
# fence does not move and nothing is written: a late attempt cannot overwrite its successor's rows.
mart_replace() {
  local resource token errors
  resource="$(sql_text "$1")"
  token="${FENCEPOST_FENCING_TOKEN:-0}"
  [[ $token =~ ^[0-9]+$ ]] || { echo "not a fencing token: $token" >&2; exit 64; }
  errors="$(mktemp "${FENCEPOST_TMP_DIR:-/tmp}/mart.XXXXXX")"
  if ! {
    cat <<SQL
CREATE TEMP TABLE passed (fence INTEGER CONSTRAINT newer_attempt_has_been_here CHECK (fence = 1));
BEGIN IMMEDIATE;
INSERT INTO fence (resource, token) VALUES ($resource, $token)
  ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token;
INSERT INTO passed SELECT changes();
SQL
    cat
    echo 'COMMIT;'
  } | mart 2> "$errors"; then
    cat "$errors" >&2
    if grep -q newer_attempt_has_been_here "$errors"; then exit 76; fi
    exit 1
  fi
  rm -f "$errors"
}
