// The charts of the report. Each takes plain rows and gives one SVG; a day without data is drawn as such.
"use strict";
const { chart, delayClass, element, label, minutes, ticks, tip, whole } = require("./svg.js");

const WEEKDAYS = ["Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"];
const weekday = (day) => new Date(`${day}T00:00:00Z`).getUTCDay();
const LEFT = 44;
const RIGHT = 8;

// Places of the days on the x axis, with day numbers and shaded weekends.
function dayAxis(days, width, top, bottom) {
  const slot = (width - LEFT - RIGHT) / days.length;
  const x = new Map(days.map((d, i) => [d, LEFT + i * slot]));
  const marks = days.map((d) => {
    const at = x.get(d);
    const weekend = [0, 6].includes(weekday(d));
    return (
      (weekend ? element("rect", { x: at, y: top, width: slot, height: bottom - top, class: "weekend" }) : "") +
      label(at + slot / 2, bottom + 14, Number(d.slice(8)), { class: "tick mid" }) +
      label(at + slot / 2, bottom + 26, WEEKDAYS[weekday(d)], { class: "tick mid faint" })
    );
  });
  return { slot, x, marks };
}

function valueAxis(values, y, width, unit = "") {
  return values.map(
    (v) =>
      element("line", { x1: LEFT, x2: width - RIGHT, y1: y(v), y2: y(v), class: v === 0 ? "zero" : "grid" }) +
      label(LEFT - 6, y(v) + 4, `${v}${unit}`, { class: "tick end" }),
  );
}

// Bars of one value per day. `bars`: [{day, value, note, class}].
function dayBars(name, days, bars) {
  const [width, height, top] = [860, 220, 10];
  const bottom = height - 34;
  const high = Math.max(1, ...bars.map((b) => b.value));
  const low = Math.min(0, ...bars.map((b) => b.value));
  const steps = ticks(low, high * 1.05);
  const span = Math.max(high * 1.05, steps[steps.length - 1]) - low;
  const y = (v) => bottom - ((v - low) / span) * (bottom - top);
  const axis = dayAxis(days, width, top, bottom);
  const known = new Map(bars.map((b) => [b.day, b]));
  const drawn = days.map((d) => {
    const [x, w] = [axis.x.get(d) + axis.slot * 0.14, axis.slot * 0.72];
    const bar = known.get(d);
    if (!bar) {
      return element("rect", { x, y: top, width: w, height: bottom - top, rx: 2, class: "missing" }, tip(`${d}: not loaded yet`));
    }
    const [from, to] = [y(Math.max(0, bar.value)), y(Math.min(0, bar.value))];
    return element("rect", { x, y: from, width: w, height: Math.max(1, to - from), rx: 2, class: bar.class }, tip(bar.note));
  });
  return chart(width, height, name, ...axis.marks, ...valueAxis(steps, y, width), ...drawn);
}

// Hours of the day against days: when does the day go wrong?
function hourMap(days, hours) {
  const [width, cell, top] = [860, 13, 6];
  const bottom = top + 24 * cell;
  const axis = dayAxis(days, width, top, bottom);
  const rows = [0, 3, 6, 9, 12, 15, 18, 21].map((h) => label(LEFT - 6, top + h * cell + 10, `${String(h).padStart(2, "0")} h`, { class: "tick end" }));
  const cells = hours
    .filter((h) => axis.x.has(h.day))
    .map((h) =>
      element(
        "rect",
        { x: axis.x.get(h.day) + 1, y: top + h.hour * cell + 0.5, width: axis.slot - 2, height: cell - 1, rx: 1.5, class: delayClass(h.delay / h.flights) },
        tip(`${h.day}, ${h.hour} to ${h.hour + 1} h: ${h.flights} flights, mean delay ${minutes(h.delay / h.flights)}`),
      ),
    );
  return chart(width, bottom + 34, "Mean delay by hour and day", ...axis.marks, ...rows, ...cells);
}

// One region's month as a small line; all share the scale given by `high` and `low`.
function regionLine(name, days, rows, low, high) {
  const [width, height, top, bottom] = [260, 110, 8, 92];
  const x = (i) => 28 + (i * (width - 36)) / Math.max(1, days.length - 1);
  const y = (v) => bottom - ((v - low) / (high - low || 1)) * (bottom - top);
  const known = new Map(rows.filter((r) => r.flights > 0).map((r) => [r.day, r]));
  const points = days.map((d, i) => [i, known.get(d)]).filter(([, r]) => r);
  const line = points.map(([i, r], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${y(r.delay / r.flights).toFixed(1)}`).join("");
  return chart(
    width,
    height,
    `Mean delay by day, ${name}`,
    ...ticks(low, high, 3).map(
      (v) =>
        element("line", { x1: 28, x2: width - 8, y1: y(v), y2: y(v), class: v === 0 ? "zero" : "grid" }) +
        label(24, y(v) + 4, v, { class: "tick end" }),
    ),
    element("path", { d: line || "M0 0", class: "line" }),
    ...points.map(([i, r]) =>
      element("circle", { cx: x(i), cy: y(r.delay / r.flights), r: 2.6, class: "dot" }, tip(`${r.day}: ${r.flights} flights, mean delay ${minutes(r.delay / r.flights)}`)),
    ),
    label(28, height - 4, "1 Jan", { class: "tick" }),
    label(width - 8, height - 4, "31 Jan", { class: "tick end" }),
  );
}

// Airports of the lower 48 in Albers' equal-area projection; size: flights, colour: mean delay.
function airportMap(airports) {
  const rad = Math.PI / 180;
  const [phi1, phi2, phi0, lambda0] = [29.5 * rad, 45.5 * rad, 37.5 * rad, -96 * rad];
  const n = (Math.sin(phi1) + Math.sin(phi2)) / 2;
  const c = Math.cos(phi1) ** 2 + 2 * n * Math.sin(phi1);
  const rho0 = Math.sqrt(c - 2 * n * Math.sin(phi0)) / n;
  const [width, height, scale] = [860, 500, 1080];
  const place = (a) => {
    const rho = Math.sqrt(c - 2 * n * Math.sin(a.latitude * rad)) / n;
    const theta = n * (a.longitude * rad - lambda0);
    return [width / 2 + scale * rho * Math.sin(theta), height / 2 - scale * (rho0 - rho * Math.cos(theta))];
  };
  const inside = airports.filter((a) => !["AK", "HI", "PR", "VI"].includes(a.state));
  const biggest = Math.max(1, ...inside.map((a) => a.flights));
  const dots = inside.map((a) => {
    const [cx, cy] = place(a);
    const note = `${a.iata}, ${a.city} ${a.state}: ${whole(a.flights)} flights, mean delay ${minutes(a.delay / a.flights)}`;
    return element("circle", { cx, cy, r: 2.5 + 17 * Math.sqrt(a.flights / biggest), class: `airport ${delayClass(a.delay / a.flights)}` }, tip(note));
  });
  const names = inside.slice(0, 14).map((a) => {
    const [x, y] = place(a);
    return label(x, y + 4, a.iata, { class: "code mid" });
  });
  return chart(width, height, "Origin airports: flights and mean delay", ...dots, ...names);
}

module.exports = { airportMap, dayBars, hourMap, regionLine };
