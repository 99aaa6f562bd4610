// The page: figures, charts and tables of a snapshot. Light and dark by the reader's own setting.
"use strict";
const fs = require("fs");
const path = require("path");
const { CLASS_NAMES, delayClass, escape, minutes, whole } = require("./svg.js");
const { airportMap, dayBars, hourMap, regionLine } = require("./charts.js");

const REGIONS = [
  ["northeast", "Northeast"],
  ["midwest", "Midwest"],
  ["south", "South and Caribbean"],
  ["mountain", "Mountain"],
  ["pacific", "Pacific"],
];
const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);
const mean = (row) => row.delay / row.flights;
const percent = (part, all) => `${((100 * part) / (all || 1)).toFixed(1)} %`;
const figure = (value, name) => `<div class="figure"><b>${escape(value)}</b><span>${escape(name)}</span></div>`;
const section = (title, lead, ...body) => `<section><h2>${escape(title)}</h2><p class="lead">${lead}</p>${body.join("")}</section>`;
const table = (head, rows) =>
  `<div class="scroll"><table><thead><tr>${head.map((h) => `<th>${escape(h)}</th>`).join("")}</tr></thead><tbody>${rows
    .map((r) => `<tr>${r.map((cell) => `<td>${escape(cell)}</td>`).join("")}</tr>`)
    .join("")}</tbody></table></div>`;
const legend = () =>
  `<p class="legend">Mean delay, minutes: ${CLASS_NAMES.map((name, i) => `<span><i class="d${i}"></i>${name}</span>`).join(" ")}</p>`;

function figures(s) {
  const flights = sum(s.days, "flights");
  return `<div class="figures">${[
    figure(whole(flights), "flights"),
    figure(flights ? minutes(sum(s.days, "delay") / flights) : "–", "mean delay"),
    figure(percent(sum(s.days, "late"), flights), "late (15 min or more)"),
    figure(whole(sum(s.days, "distance")), "miles flown"),
  ].join("")}</div>`;
}

function dayCharts(s, month) {
  const bars = (value, note, kind) => s.days.map((d) => ({ day: d.day, value: value(d), note: `${d.day}: ${note(d)}`, class: kind(d) }));
  const flights = dayBars("Flights per day", month, bars((d) => d.flights, (d) => `${d.flights} flights`, () => "bar"));
  const delays = dayBars(
    "Mean delay per day, minutes",
    month,
    bars(mean, (d) => `mean delay ${minutes(mean(d))}, ${percent(d.late, d.flights)} late`, (d) => delayClass(mean(d))),
  );
  const ranked = [...s.days].sort((a, b) => mean(b) - mean(a));
  const worst = ranked.length ? `The worst day was <b>${ranked[0].day}</b> with a mean of ${minutes(mean(ranked[0]))}, the best <b>${ranked[ranked.length - 1].day}</b> with ${minutes(mean(ranked[ranked.length - 1]))}.` : "No day is loaded yet.";
  return (
    section("Flights per day", "Weekends are shaded.", flights) +
    section("Mean delay per day", worst, delays, legend()) +
    section("Hour by hour", "When a day goes wrong it does so in the afternoon, and the evening pays.", hourMap(month, s.hours), legend())
  );
}

function regionCharts(s, month) {
  const means = s.regions.filter((r) => r.flights > 0).map(mean);
  const [low, high] = [Math.min(0, ...means), Math.max(5, ...means)];
  const cards = REGIONS.map(([id, name]) => {
    const rows = s.regions.filter((r) => r.region === id);
    const flights = sum(rows, "flights");
    const text = flights ? `${whole(flights)} flights, ${minutes(sum(rows, "delay") / flights)}, ${percent(sum(rows, "late"), flights)} late` : "nothing yet";
    return `<div class="card"><h3>${escape(name)}</h3>${regionLine(name, month, rows, low, high)}<p>${text}</p></div>`;
  });
  return section("Regions", "Mean delay per day by region of the origin, all on one scale.", `<div class="cards">${cards.join("")}</div>`);
}

function tables(s) {
  const worst = [...s.worst].sort((a, b) => b.delay - a.delay || (a.day + a.at).localeCompare(b.day + b.at)).slice(0, 12);
  const ofDay = (d) => [d.day, whole(d.flights), whole(d.delay), minutes(mean(d)), percent(d.late, d.flights), whole(d.distance), d.run_id, d.attempt];
  return (
    section("Worst delays of the bad days", "From <code>worst_delays</code>, which is skipped on good days.", table(["day", "at", "from", "to", "delay"], worst.map((w) => [w.day, w.at, w.origin, w.destination, `${whole(w.delay)} min`]))) +
    section("All days", "And which run and attempt completed each.", table(["day", "flights", "delay, min", "mean", "late", "miles", "run", "attempt"], s.days.map(ofDay)))
  );
}

function page(s, month) {
  const style = fs.readFileSync(path.join(__dirname, "style.css"), "utf8");
  const complete = s.days.length >= month.length;
  const state = complete ? "all 31 days are loaded" : `${s.days.length} of ${month.length} days are loaded; this page renews itself`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">${complete ? "" : '<meta http-equiv="refresh" content="3">'}
<title>US flights, January 2001</title><style>${style}</style></head><body><main>
<header><h1>US flights, January 2001</h1><p>A sample of the month's flights, one Fencepost run per day: <b>${state}</b>.</p></header>
${figures(s)}
${dayCharts(s, month)}
${section("Where", "Origin airports of the lower 48 states: size is flights, colour the mean delay.", airportMap(s.airports), legend())}
${regionCharts(s, month)}
${tables(s)}
<footer>Data: <code>flights-20k.json</code> and <code>airports.csv</code> of npm <code>vega-datasets</code> 3.2.1. The same sums for machines: <a href="totals.json">totals.json</a>.</footer>
</main></body></html>
`;
}

module.exports = { page };
