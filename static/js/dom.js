// Building elements without markup, and writing numbers the way the server writes them.

/** h builds an element; a null child is left out, text is never parsed. */
export function h(tag, attrs = {}, ...children) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) {
    if (v === null || v === undefined || v === false) continue;
    if (k.startsWith("on")) el.addEventListener(k.slice(2), v);
    else if (k === "class") el.className = v;
    else el.setAttribute(k, v === true ? "" : String(v));
  }
  el.append(...children.filter((c) => c !== null && c !== undefined));
  return el;
}

/** s builds an SVG element. */
export function s(tag, attrs = {}, ...children) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attrs)) el.setAttribute(k, v);
  el.append(...children);
  return el;
}

export const $ = (sel, root = document) => root.querySelector(sel);
export const $$ = (sel, root = document) => [...root.querySelectorAll(sel)];

export const NOT_YET = "…";
export const NOT_APPLICABLE = "–";

export const count = (n) => Math.round(n).toLocaleString("en-US");

export function fixed(v, d) {
  if (v === null || v === undefined || !Number.isFinite(v)) return NOT_APPLICABLE;
  const t = v.toFixed(d);
  return /^-0(\.0*)?$/.test(t) ? t.slice(1) : t;
}

/** figure writes a value of unknown size: four significant digits, units from ten thousand on. */
export function figure(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return NOT_APPLICABLE;
  const a = Math.abs(v);
  if (a >= 1e9) return (v / 1e9).toFixed(1) + " G";
  if (a >= 1e6) return (v / 1e6).toFixed(1) + " M";
  if (a >= 1e4) return (v / 1e3).toFixed(1) + " k";
  if (Number.isInteger(v)) return String(v);
  if (a >= 100) return v.toFixed(1);
  if (a >= 1e-3) return a >= 10 ? v.toFixed(2) : v.toFixed(3);
  return v.toExponential(2);
}

export function span(seconds) {
  if (!(seconds >= 0)) return NOT_APPLICABLE;
  const n = Math.floor(seconds);
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} m ${n % 60} s`;
  if (n < 172800) return `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} m`;
  return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
}

/** clock writes a short age as 0:07. */
export const clock = (seconds) => {
  const n = Math.max(0, Math.floor(seconds));
  return `${Math.floor(n / 60)}:${String(n % 60).padStart(2, "0")}`;
};

const CODES = [["alfworld", "AF"], ["dbbench", "DB"], ["knowledgegraph", "KG"], ["kg", "KG"], ["os", "OS"], ["webshop", "WS"]];
export const taskCode = (task) => (CODES.find(([p]) => task.startsWith(p)) || [0, task.slice(0, 2).toUpperCase()])[1];

export const letterClass = (l) => ("CSAB".includes(l) ? l : "X");

/** letters shows the policies of turns, at most sixteen of them. */
export function letters(text) {
  if (!text) return h("span", { class: "muted" }, NOT_APPLICABLE);
  const all = [...text];
  const el = h("span", { class: "letters", role: "img", "aria-label": "policies of the turns: " + text });
  for (const l of all.slice(0, 16)) el.append(h("span", { class: "p " + letterClass(l) }, l));
  if (all.length > 16) el.append(h("span", { class: "p more" }, "+" + (all.length - 16)));
  return el;
}

export function chip(tone, word, detail) {
  return h("span", { class: "chip " + tone }, h("span", { class: "dot", "aria-hidden": "true" }), word,
    detail ? h("span", { class: "chip-detail" }, "· " + detail) : null);
}

/** setText changes an element only when its text differs, so that nothing is announced or laid out in vain. */
export function setText(el, text) {
  if (el && el.textContent !== text) el.textContent = text;
}

/** throttle runs f at most once per ms, always with a last run. */
export function throttle(f, ms) {
  let timer = 0, last = 0;
  return () => {
    if (timer) return;
    const wait = Math.max(0, last + ms - performance.now());
    timer = setTimeout(() => { timer = 0; last = performance.now(); f(); }, wait);
  };
}

/** refresh replaces one element by the server's present rendering, unless the user is busy inside it. */
export function refresh(selector, swap = "outerHTML") {
  const el = $(selector);
  if (!el || !window.htmx) return Promise.resolve(false);
  const morphs = swap.endsWith("Morph"); // elements stay the same ones, and so does what is focused
  if ((!morphs && el.contains(document.activeElement)) || $("dialog[open]", el) || $("details[open].menu", el)) return Promise.resolve(false);
  return window.htmx.ajax("GET", location.pathname + location.search, { target: selector, select: selector, swap }).then(() => true);
}
