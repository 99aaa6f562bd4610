// build.js SNAPSHOT.json DIR: writes DIR/index.html (one file, no script, nothing loaded from elsewhere)
// and DIR/totals.json. Pure: the same snapshot gives the same bytes.
"use strict";
const fs = require("fs");
const path = require("path");
const { page } = require("./page.js");

const MONTH = Array.from({ length: 31 }, (_, i) => `2001-01-${String(i + 1).padStart(2, "0")}`);

function totals(days) {
  const out = {};
  for (const d of days) out[d.day] = { flights: d.flights, delay: d.delay, distance: d.distance };
  return { days: out };
}

const [, , snapshotFile, dir] = process.argv;
if (!dir) {
  console.error("usage: build.js SNAPSHOT.json DIR");
  process.exit(2);
}
const snapshot = JSON.parse(fs.readFileSync(snapshotFile, "utf8"));
fs.writeFileSync(path.join(dir, "index.html"), page(snapshot, MONTH));
fs.writeFileSync(path.join(dir, "totals.json"), JSON.stringify(totals(snapshot.days), null, 1) + "\n");
