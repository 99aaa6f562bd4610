#!/usr/bin/env bash
# check.sh TOTALS.json SOURCE.json: is each day's sum in the report's totals what the source says?
# Computed afresh from the source by other means than the example's own (no SQL, no mart).
# Exit 0 and one line if all is equal, else 1 and each difference.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: check.sh TOTALS.json SOURCE.json" >&2; exit 2; }
exec node - "$@" <<'JS'
"use strict";
const fs = require("fs");
const [, , totalsFile, sourceFile] = process.argv;
const found = JSON.parse(fs.readFileSync(totalsFile, "utf8")).days;
const expected = {};
for (const row of JSON.parse(fs.readFileSync(sourceFile, "utf8"))) {
  if (!row.date.startsWith("2001/01/")) continue;
  const day = row.date.slice(0, 10).split("/").join("-");
  const sums = (expected[day] = expected[day] || { flights: 0, delay: 0, distance: 0 });
  sums.flights += 1;
  sums.delay += row.delay;
  sums.distance += row.distance;
}
const differences = [];
for (const day of new Set([...Object.keys(expected), ...Object.keys(found)])) {
  for (const key of ["flights", "delay", "distance"]) {
    const [is, should] = [found[day] && found[day][key], expected[day] && expected[day][key]];
    if (is !== should) differences.push(`${day} ${key}: report ${is}, source ${should}`);
  }
}
// What is known of this month, so that a damaged source does not agree with itself.
const total = (key) => Object.values(expected).reduce((sum, day) => sum + day[key], 0);
const known = { days: 31, flights: 6937, delay: 44647, distance: 4979551 };
const sums = { days: Object.keys(expected).length, flights: total("flights"), delay: total("delay"), distance: total("distance") };
for (const key of Object.keys(known)) {
  if (sums[key] !== known[key]) differences.push(`source: ${key} is ${sums[key]}, known is ${known[key]}`);
}
if (differences.length) {
  console.error(differences.join("\n"));
  process.exit(1);
}
console.log(`${sums.days} days, ${sums.flights} flights, delay ${sums.delay}, distance ${sums.distance}: equal to the source`);
JS
