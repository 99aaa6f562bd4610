# Sourced by each task: where things lie, and the few words that the tasks share.
# Needs FLIGHTS_DIR (data) and FLIGHTS_CODE (scripts); a day's task also FENCEPOST_DS.
# shellcheck shell=bash
set -euo pipefail

: "${FLIGHTS_DIR:?the DAG file names the data directory}" "${FLIGHTS_CODE:?the DAG file names the scripts}"
cache="$FLIGHTS_DIR/cache"
mart="$FLIGHTS_DIR/mart.sqlite"
report_dir="$FLIGHTS_DIR/report"
locks="$FLIGHTS_DIR/locks"
mkdir -p "$cache" "$report_dir" "$locks"

# Bad input, told apart from an accident: the DAG's retry_policy gives up on this one (EX_DATAERR).
bad_data() { echo "bad data: $*" >&2; exit 65; }

# The day of this run, e.g. 2001-01-05. It goes into paths and SQL, so its form is checked.
day() {
  local day="${FENCEPOST_DS:?a run without a logical date has no day; trigger it with --logical-date}"
  [[ $day =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || { echo "not a day: $day" >&2; exit 64; }
  echo "$day"
}

# A day's own files. Nobody but the tasks of that day's run writes there.
staging() { local dir; dir="$FLIGHTS_DIR/staging/$(day)"; mkdir -p "$dir"; echo "$dir"; }

# A text as a SQL literal: a path may hold a quote.
sql_text() { printf "'%s'" "${1//\'/\'\'}"; }

# A path as an argument of one of sqlite3's own commands (.import).
dot_path() { local path="${1//\\/\\\\}"; printf '"%s"' "${path//\"/\\\"}"; }

# Standard input becomes FILE at once or not at all; what a killed attempt left aside is removed.
put() {
  local file="$1" aside="$1.${FENCEPOST_ATTEMPT_ID:-$$}.part"
  rm -f -- "$file".*.part
  cat > "$aside"
  mv -f -- "$aside" "$file"
}

# Hand a value to later tasks (XCom).
output() { echo "$1=$2" >> "${FENCEPOST_OUTPUT_FILE:-/dev/null}"; }
