// The few words of SVG and text that the charts share.
"use strict";

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const px = (n) => Number(n.toFixed(1));
const whole = (n) => Math.round(n).toLocaleString("en-US");
const minutes = (n) => `${n < 0 ? "−" : ""}${Math.abs(n).toFixed(1)} min`;

// element("rect", {x: 1}, children) -> text; a title child is the browser's own tooltip.
function element(name, attributes, ...children) {
  const text = Object.entries(attributes)
    .filter(([, v]) => v !== undefined)
    .map(([k, v]) => ` ${k}="${escape(typeof v === "number" ? px(v) : v)}"`)
    .join("");
  const inside = children.flat().join("");
  return inside ? `<${name}${text}>${inside}</${name}>` : `<${name}${text}/>`;
}
const label = (x, y, text, attributes = {}) => element("text", { x, y, ...attributes }, escape(text));
const tip = (text) => element("title", {}, escape(text));

// A chart is an image with a name for those who do not see it.
const chart = (width, height, name, ...children) =>
  element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }, ...children);

// Round steps for an axis from 0 (or below) to max.
function ticks(min, max, wanted = 4) {
  const raw = (max - min || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const out = [];
  for (let v = Math.ceil(min / step) * step; v <= max + step / 1e6; v += step) out.push(v);
  return out;
}

// A mean delay as one of seven classes, blue (early) over grey to orange (late): told apart by everybody.
const CLASSES = [-5, 0, 5, 10, 20, 35];
const delayClass = (mean) => `d${CLASSES.filter((c) => mean >= c).length}`;
const CLASS_NAMES = ["under −5", "−5 to 0", "0 to 5", "5 to 10", "10 to 20", "20 to 35", "35 and more"];

module.exports = { CLASS_NAMES, chart, delayClass, element, escape, label, minutes, ticks, tip, whole };
