#!/usr/bin/env bash
# The main example as a person meets it: ./run in a fresh home, everything killed with -9 in the middle,
# ./run --once again, and a third time with nothing left to do. Needs no network once the package is cached.
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)"
source "$root/examples/setup.sh"
fail() { echo "FAILED: $*" >&2; exit 1; }

place="$(mktemp -d "${TMPDIR:-/tmp}/fencepost e2e.XXXXXX")"
export FENCEPOST_HOME="$place/home"
fencepost="$root/target/release/fencepost"
first=''
cleanup() {
  if [ -n "$first" ]; then kill -9 "$first" 2> /dev/null || true; fi
  processes_of "$FENCEPOST_HOME" | while read -r pid _; do kill -9 "$pid" 2> /dev/null || true; done
  rm -rf -- "$place"
}
trap cleanup EXIT
cached="$root/.fencepost/flights/cache"
if [ -f "$cached/flights-20k.json" ]; then
  mkdir -p "$FENCEPOST_HOME/flights/cache"
  cp -- "$cached"/* "$FENCEPOST_HOME/flights/cache/"
fi

succeeded() {
  { "$fencepost" runs list flights -o json 2> /dev/null || echo '[]'; } | node -e '
    console.log(JSON.parse(require("fs").readFileSync(0, "utf8") || "[]").filter((r) => r.state === "success").length)'
}

say "first ./run, killed when some days are done and the rest is under way"
"$root/run" > "$place/first.out" 2>&1 &
first=$!
until [ "$(succeeded)" -ge 3 ]; do
  kill -0 "$first" 2> /dev/null || { cat "$place/first.out" >&2; fail "the first ./run ended by itself"; }
  sleep 0.3
done
read -r _ server < "$FENCEPOST_HOME/run.pid"
kill -9 "$first" "$server"
wait "$first" 2> /dev/null || true
first=''
grep -q "of 31 days done" "$place/first.out" || fail "no progress was shown"

# once NAME: ./run --once must succeed and keep its form.
once() {
  "$root/run" --once > "$place/$1.out" || { cat "$place/$1.out" "$FENCEPOST_HOME/standalone.log" >&2; fail "$1: exit status $?"; }
  local report
  report="$(tail -n 1 "$place/$1.out")"
  [[ $report == "report /"* ]] || fail "$1: the last line is: $report"
  report="${report#report }"
  [ -s "$report" ] || fail "$1: no report at $report"
  "$root/examples/flights/check.sh" "$(dirname -- "$report")/totals.json" "$FENCEPOST_HOME/flights/cache/flights-20k.json"
  [ -z "$(processes_of "$FENCEPOST_HOME")" ] || fail "$1: left behind: $(processes_of "$FENCEPOST_HOME")"
}
"$fencepost" validate --strict "$root/examples/hello" "$root/examples/flights/dags" || fail "an example does not validate"

say "second ./run, to the end"
once second
sums="$(sha256sum < "$FENCEPOST_HOME/flights/report/index.html")"
say "third ./run, nothing left to do: it serves, and answers for what happened"
"$root/run" > "$place/third.out" 2>&1 &
first=$!
until grep -q 'serving until' "$place/third.out"; do
  kill -0 "$first" 2> /dev/null || { cat "$place/third.out" >&2; fail "the third ./run ended by itself"; }
  sleep 0.3
done
[ "$sums" = "$(sha256sum < "$FENCEPOST_HOME/flights/report/index.html")" ] || fail "the third ./run changed the report"
"$fencepost" doctor || fail "the audit found violations"
# However often the server was killed: one attempt for each task instance that ran, none for a skipped one.
"$fencepost" runs list flights -o name | while IFS= read -r run; do
  "$fencepost" tasks list flights "$run" -o json
done | node -e '
  const text = require("fs").readFileSync(0, "utf8").trim().replace(/\]\s*\[/g, "],[");
  const all = JSON.parse("[" + text + "]").flat();
  const wrong = all.filter((t) => t.attempt_count !== (t.state === "skipped" ? 0 : 1));
  for (const t of wrong.slice(0, 10)) console.error(`${t.run_id} ${t.task_id}: ${t.state}, ${t.attempt_count} attempts`);
  console.log(`${all.length} task instances, ${wrong.length} of them not with one attempt`);
  process.exit(wrong.length || all.length !== 31 * 13 ? 1 : 0);' || fail "something ran twice or not at all"
kill -TERM "$first"
wait "$first" 2> /dev/null || true
first=''
[ -z "$(processes_of "$FENCEPOST_HOME")" ] || fail "left behind: $(processes_of "$FENCEPOST_HOME")"
echo "examples/flights, killed and begun again: ok"
