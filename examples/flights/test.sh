#!/usr/bin/env bash
# test.sh [CACHE_DIR]: the example's scripts without Fencepost. All 31 days by hand, eight at a time, in a
# random order; attempts are killed in the middle and begun again, one day runs twice, a late attempt meets
# the fence. At the end the totals must equal the source. Paths hold a space and a quote on purpose.
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
place="$(mktemp -d "${TMPDIR:-/tmp}/flights it's.XXXXXX")"
trap 'rm -rf -- "$place"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$here/install" "$place/dags" "$place/data"
grep -q "FLIGHTS_DIR: \"$place/data\"" "$place/dags/flights.yaml" || fail "install does not write the data directory"
before="$(sha256sum < "$place/dags/flights.yaml")"
"$here/install" "$place/dags" "$place/data"
[ "$before" = "$(sha256sum < "$place/dags/flights.yaml")" ] || fail "installing twice changes the DAG"

export FLIGHTS_DIR="$place/data" FLIGHTS_CODE="$place/data/code"
mkdir -p "$FLIGHTS_DIR/cache"
if [ -n "${1:-}" ] && [ -f "$1/flights-20k.json" ]; then cp -- "$1"/* "$FLIGHTS_DIR/cache/"; fi
bash "$FLIGHTS_CODE/tasks/fetch.sh"

# attempt DAY TOKEN TASK [REGION]: one attempt as a worker would start it.
attempt() {
  local outputs="$place/out.$1.$3${4:-}"
  FENCEPOST_DS="$1" FENCEPOST_RUN_ID="by_hand__$1" FENCEPOST_FENCING_TOKEN="$2" FENCEPOST_ATTEMPT_ID="a$2" \
    FENCEPOST_OUTPUT_FILE="$outputs" FENCEPOST_MAP_REGION="${4:-}" bash "$FLIGHTS_CODE/tasks/$3.sh" > "$place/log" 2>&1
}
run_day() {
  local day="$1" token="$2" task region
  for task in extract check transform load; do
    # Kill a first attempt somewhere in its work (0 to 30 ms in), then do it again under a higher token.
    # The whole tree, as Fencepost does: a child that lives on would write beside its successor.
    setsid bash -c 'attempt "$@"' _ "$day" "$token" "$task" &
    sleep "0.0$((RANDOM % 4))"
    kill -9 -- -$! 2> /dev/null || kill -9 $! 2> /dev/null || true
    wait $! 2> /dev/null || true
    token=$((token + 1))
    attempt "$day" "$token" "$task" || fail "$day $task"
  done
  for region in northeast midwest south mountain pacific; do
    attempt "$day" $((token += 1)) region "$region" || fail "$day region $region"
  done
  attempt "$day" $((token += 1)) summary || fail "$day summary"
  attempt "$day" $((token += 1)) worst-delays || fail "$day worst-delays"
  attempt "$day" $((token += 1)) report || fail "$day report"
}
export place
export -f attempt run_day fail

began=$SECONDS
seq -w 1 31 | shuf | awk '{ print "2001-01-" $1, NR * 100 }' |
  xargs -P 8 -L 1 bash -euo pipefail -c 'run_day "$1" "$2"' _
run_day 2001-01-05 90000
echo "31 days in $((SECONDS - began)) s"
"$here/check.sh" "$FLIGHTS_DIR/report/totals.json" "$FLIGHTS_DIR/cache/flights-20k.json"

# A late attempt: it must find the fence and say so by exit status 76, and change nothing.
status=0
attempt 2001-01-07 1 load || status=$?
[ "$status" = 76 ] || fail "a late load ends with $status instead of 76"

# Bad data is told apart from an accident, by 65.
echo '[{"date":"2001/01/08 10:00","delay":"x","distance":0,"origin":"ORD","destination":"???"}]' \
  > "$FLIGHTS_DIR/staging/2001-01-07/rows.json"
status=0
attempt 2001-01-07 99999 check || status=$?
[ "$status" = 65 ] || fail "bad rows end with $status instead of 65"

# check.sh itself must be able to fail.
sed 's/"flights": 222/"flights": 221/' "$FLIGHTS_DIR/report/totals.json" > "$place/wrong.json"
if "$here/check.sh" "$place/wrong.json" "$FLIGHTS_DIR/cache/flights-20k.json" 2> /dev/null; then
  fail "check.sh accepts wrong totals"
fi
left="$(find "$FLIGHTS_DIR" -name '*.part' -o -name aside -o -name 'unpack.*')"
[ -z "$left" ] || fail "left behind: $left"
echo "examples/flights: ok"
