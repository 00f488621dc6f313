// Charts of stored series. The server does the mathematics: every bucket carries exact extremes and an exact mean. Here
// they are drawn (envelope, faint raw line, smoothed line), read out, zoomed by asking again, and written as a table.
import { $, h, s, figure, count, setText, throttle } from "app/dom";

const DASH = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [12, 4]];
const SYNC = "run";
const all = new Set();
const settings = { x: "step", smooth: 0.6, logX: false, logY: false, each: false };
const recent = new Map(); // metric -> points that came live, to join a chart that is still loading

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const probe = h("span", { hidden: true });
/** colour resolves a custom property to a colour that canvas understands. */
function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
const LINES = ["--lC", "--lS", "--lA", "--lB", "--lX", "--lG"];
const alpha = (c, a) => `color-mix(in srgb, ${c} ${a * 100}%, transparent)`;

/** smoothed is a debiased exponential mean; the weight follows the distance on x where points are uneven. */
export function smoothed(xs, ys, weight) {
  if (!weight) return ys;
  const gaps = xs.slice(1).map((x, i) => x - xs[i]).filter((d) => d > 0).sort((a, b) => a - b);
  const unit = gaps[gaps.length >> 1] || 1;
  let mean = 0, bias = 1, before = null;
  return ys.map((y, i) => {
    if (y === null || y === undefined) return y;
    const w = before === null ? weight : Math.pow(weight, Math.min(50, Math.max(1e-3, (xs[i] - before) / unit)));
    mean = w * mean + (1 - w) * y;
    bias *= w;
    before = xs[i];
    return mean / (1 - bias);
  });
}

class Chart {
  constructor(el) {
    this.el = el;
    this.spec = JSON.parse(el.dataset.chart);
    this.run = el.dataset.run;
    this.plotEl = $(".plot", el);
    this.legendEl = $(".legend", el);
    this.sayEl = $("[role=status]", el);
    this.details = $("details", el);
    this.note = h("span", { class: "chart-note" });
    this.range = null; // zoom: [from, to]
    this.series = null;
    this.pick = 0;
    this.appended = 0;
    this.draw = this.draw.bind(this);
    this.loadSoon = throttle(() => this.load(), 3000);
    this.zoomSoon = throttle(() => this.load(), 150);
    this.details.addEventListener("toggle", () => this.table());
    this.plotEl.addEventListener("keydown", (e) => this.key(e));
    all.add(this);
  }

  get axis() { return this.spec.id === "warmup" ? (settings.x === "time" ? "time" : "step") : settings.x; }

  /** lines are what to draw: the spec's series, or one per task. */
  lines() {
    const tasks = ($("#per-task")?.dataset.tasks || "").split(" ").filter(Boolean);
    if (!settings.each || !this.spec.per_task || !tasks.length) return this.spec.series;
    return tasks.map((t, i) => ({ ...this.spec.series[0], metric: this.spec.series[0].metric + "/" + t, spread: null, label: t, style: i % 6 }));
  }

  async fetchSeries(metric) {
    const q = new URLSearchParams({ runs: this.run, metric, x: this.axis, px: String(Math.max(200, Math.min(1200, this.plotEl.clientWidth))) });
    if (this.range) { q.set("from", this.range[0]); q.set("to", this.range[1]); }
    const r = await fetch("/api/v1/series?" + q, { headers: { Accept: "application/json" } });
    if (!r.ok) throw new Error((await r.json().catch(() => ({})))?.error?.message || `the server answered ${r.status}`);
    return (await r.json()).items || [];
  }

  async load() {
    const turn = (this.turn = (this.turn || 0) + 1);
    const lines = this.lines();
    try {
      const got = await Promise.all(lines.map(async (l) => {
        const [main, low, high, spread] = await Promise.all([l.metric, l.low, l.high, l.spread].map((m) => (m ? this.fetchSeries(m) : [])));
        return { line: l, main, low, high, spread };
      }));
      if (turn !== this.turn) return;
      this.series = got;
      this.appended = 0;
      for (const g of got) {
        const live = recent.get(g.line.metric) || [];
        for (const p of live) this.put(g.main, p);
      }
      this.draw();
    } catch (err) {
      if (turn === this.turn) setText(this.legendEl, "This chart could not be loaded: " + err.message);
    }
  }

  /** put appends a live point where it is new; points of an older attempt or already stored are left out. */
  put(list, p) {
    if (this.range || (this.axis !== "step" && this.axis !== "time")) return false;
    let win = list.find((x) => !x.faint);
    if (!win) list.push((win = { buckets: [], exact: true }));
    const last = win.buckets[win.buckets.length - 1];
    const x = this.axis === "time" ? p.t : p.s;
    if (last && x <= last.x1) return false;
    const nan = p.v === null;
    win.buckets.push({ x0: x, x1: x, first: p.v, min: p.v, max: p.v, last: p.v, sum: p.v, count: nan ? 0 : 1, nan: nan ? 1 : 0 });
    return true;
  }

  /** live takes points that were just written; many of them, or another axis, ask the server again. */
  live(points) {
    if (!this.series) return;
    let hit = false;
    for (const g of this.series) {
      for (const [key, metric] of [["main", g.line.metric], ["low", g.line.low], ["high", g.line.high], ["spread", g.line.spread]]) {
        for (const p of metric ? points.get(metric) || [] : []) {
          hit = true;
          if (this.put(g[key], p)) this.appended++;
        }
      }
    }
    if (!hit) return;
    if (!this.caught) { // whatever was written between the first answer and the subscription is asked for once
      this.caught = true;
      this.loadSoon();
    }
    if (this.appended > 200 || this.range || !["step", "time"].includes(this.axis)) return this.loadSoon();
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(this.draw);
  }

  /** columns aligns everything on one x and makes the plot's columns; each drawn line knows its place in them. */
  columns() {
    const xs = new Set(), hidden = { log: 0, nan: 0 };
    const okX = (x) => !settings.logX || x > 0;
    const put = (list) => list.forEach((se) => se.buckets.forEach((b) => { if (okX(b.x1)) xs.add(b.x1); }));
    for (const g of this.series) { put(g.main); put(g.low); put(g.high); }
    const x = [...xs].sort((a, b) => a - b);
    const at = new Map(x.map((v, i) => [v, i]));
    const y = (v) => {
      if (v === null || v === undefined) return null;
      if (settings.logY && v <= 0) { hidden.log++; return null; }
      return v;
    };
    const column = (se, f) => {
      const c = new Array(x.length).fill(null);
      for (const b of se?.buckets || []) {
        hidden.nan += b.nan;
        if (b.count && at.has(b.x1)) c[at.get(b.x1)] = y(f(b));
      }
      return c;
    };
    const mean = (b) => b.sum / b.count;
    const winner = (list) => list.find((se) => !se.faint);
    const cols = [x], series = [{}], bands = [], rows = [];
    const add = (c, opt) => { cols.push(c); series.push(opt); return cols.length - 1; };
    const paper = colour("--n0");
    const none = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
    let below = null;
    this.series.forEach((g, n) => {
      const ink = colour(LINES[g.line.style % LINES.length]);
      const win = winner(g.main);
      const raw = column(win, mean);
      const row = { label: g.line.label, style: g.line.style, raw, exact: !win || win.exact };
      if (this.spec.stack) {
        below = raw.map((v, i) => (v === null ? below?.[i] ?? null : v + (below?.[i] ?? 0)));
        row.drawn = below;
        row.smooth = raw;
        row.ink = ink;
        rows.push(row);
        return;
      }
      for (const f of g.main.filter((se) => se.faint)) add(column(f, mean), { stroke: alpha(ink, 0.28), width: 1, dash: [2, 3], points: { show: false } });
      let lo = null, hi = null;
      if (g.line.low) { lo = column(winner(g.low), mean); hi = column(winner(g.high), mean); }
      else if (g.line.spread) {
        const sd = column(winner(g.spread), mean);
        lo = raw.map((v, i) => (v === null || sd[i] === null ? null : y(v - sd[i])));
        hi = raw.map((v, i) => (v === null || sd[i] === null ? null : v + sd[i]));
        row.spread = sd;
      } else if (win && !win.exact) { lo = column(win, (b) => b.min); hi = column(win, (b) => b.max); }
      if (lo) {
        const h1 = add(hi, none), l1 = add(lo, none);
        bands.push({ series: [h1, l1], fill: alpha(ink, 0.15) });
        row.lo = lo;
        row.hi = hi;
      }
      const soft = g.line.raw || g.line.dots ? raw : smoothed(x, raw, settings.smooth);
      if (soft !== raw) add(raw, { stroke: alpha(ink, 0.25), width: 1, points: { show: false } });
      add(soft, {
        stroke: ink, width: g.line.dots ? 1 : 2, dash: DASH[g.line.style % DASH.length], spanGaps: !!g.line.dots,
        points: g.line.dots ? { show: true, size: 7, fill: ink, stroke: ink } : { show: x.length < 3, size: 5, fill: ink },
      });
      row.smooth = soft;
      rows.push(row);
    });
    if (this.spec.stack) {
      for (const row of [...rows].reverse()) {
        add(row.drawn, { stroke: row.ink, width: 1, fill: `color-mix(in srgb, ${row.ink} 38%, ${paper})`, dash: DASH[row.style % DASH.length], points: { show: x.length < 3, size: 4 } });
      }
    }
    return { cols, series, bands, rows, hidden };
  }

  draw() {
    if (!this.series) return;
    const d = this.columns();
    this.rows = d.rows;
    this.x = d.cols[0];
    const empty = !this.x.length;
    this.details.hidden = empty;
    const shape = d.series.map((o) => (o.stroke || "") + (o.width || 0)).join();
    if (empty) {
      this.u?.destroy();
      this.u = null;
      this.plotEl.replaceChildren();
      setText(this.legendEl, "No points yet.");
      return;
    }
    if (this.u && shape === this.shape) {
      const i = this.u.cursor.idx;
      this.u.setData(d.cols, !this.range);
      this.legend(i);
    } else {
      this.shape = shape;
      this.build(d);
      this.legend(null);
    }
    this.caption(d.hidden);
    if (this.details.open) this.table();
  }

  caption(hidden) {
    const parts = [];
    if (hidden.log) parts.push(`${count(hidden.log)} values ≤ 0 not shown on log`);
    if (hidden.nan) parts.push(`${count(hidden.nan)} not a number`);
    setText(this.note, parts.join(" · "));
    if (!parts.length) this.note.remove();
    else if (!this.note.parentNode) this.el.append(this.note);
  }

  build(d) {
    this.u?.destroy();
    this.plotEl.replaceChildren();
    const ink = colour("--n6"), grid = colour("--n3"), font = "11px " + token("--sans");
    const time = this.axis === "time";
    const y = { distr: settings.logY ? 3 : 1 };
    if (this.spec.range === "rate" && !settings.logY) y.range = [0, 1];
    else if (!settings.logY) y.range = (u, lo, hi) => (lo === null ? [0, 1] : lo === hi ? [Math.min(0, lo), hi || 1] : window.uPlot.rangeNum(lo, hi, 0.08, true));
    const values = (u, v) => v.map((t) => (t === null ? "" : figure(t).replace(/\.0+$|(\.\d*?)0+$/, "$1")));
    const opts = {
      width: this.plotEl.clientWidth, height: this.plotEl.clientHeight,
      legend: { show: false },
      padding: [8, 14, 0, 0],
      cursor: { sync: this.spec.id === "warmup" ? undefined : { key: SYNC, setSeries: false }, drag: { x: true, y: false, setScale: true }, points: { size: 6 } },
      scales: { x: { time, distr: settings.logX && !time ? 3 : 1 }, y },
      axes: [
        { stroke: ink, font, grid: { show: false }, ticks: { stroke: grid, size: 4 }, size: 24, gap: 3, values: time ? undefined : values },
        { stroke: ink, font, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: 42, gap: 4, values },
      ],
      series: d.series, bands: d.bands,
      hooks: {
        setCursor: [(u) => this.legend(u.cursor.idx)],
        setSelect: [(u) => { if (u.select.width > 4) this.zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); }],
      },
    };
    this.u = new window.uPlot(opts, d.cols, this.plotEl);
    this.u.over.addEventListener("dblclick", () => this.zoom(null));
    if (!this.sizes) {
      this.sizes = new ResizeObserver(throttle(() => {
        const { clientWidth: width, clientHeight: height } = this.plotEl;
        if (this.u && width && (width !== this.u.width || height !== this.u.height)) this.u.setSize({ width, height });
      }, 60));
      this.sizes.observe(this.plotEl);
    }
  }

  zoom(from, to) {
    this.range = from === null ? null : [from, to];
    this.zoomSoon();
  }

  at(i) {
    if (this.axis === "time") return new Date(this.x[i] * 1000).toLocaleTimeString();
    const name = { tokens: "tokens", samples: "trajectories" }[this.axis] || this.spec.x || "step";
    return name + " " + figure(this.x[i]);
  }

  value(row, i) {
    let t = figure(row.smooth[i]);
    if (row.smooth !== row.raw && row.raw[i] !== null) t += ` (raw ${figure(row.raw[i])})`;
    if (row.spread && row.spread[i] !== null) t += ` ± ${figure(row.spread[i])}`;
    else if (row.lo && row.lo[i] !== null) t += ` [${figure(row.lo[i])}, ${figure(row.hi[i])}]`;
    return t;
  }

  lastOf(row) {
    for (let i = row.raw.length - 1; i >= 0; i--) if (row.raw[i] !== null) return i;
    return -1;
  }

  legend(i) {
    if (!this.rows) return;
    const on = i !== null && i !== undefined && i < this.x.length;
    const parts = on ? [h("span", {}, this.at(i))] : [];
    const rows = this.rows.map((r) => ({ r, i: on ? i : this.lastOf(r) }));
    if (on) rows.sort((a, b) => (b.r.smooth[b.i] ?? -Infinity) - (a.r.smooth[a.i] ?? -Infinity));
    for (const { r, i: k } of rows) {
      const swatch = s("svg", { viewBox: "0 0 18 8", class: "l" + (r.style % 6), "aria-hidden": "true" },
        s("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": DASH[r.style % DASH.length].join(" ") }));
      parts.push(h("span", {}, swatch, r.label, h("b", {}, k < 0 ? "…" : on ? this.value(r, k) : figure(r.smooth[k]))));
    }
    if (this.spec.unit) parts.push(h("span", { class: "muted" }, this.spec.unit));
    this.legendEl.replaceChildren(...parts);
  }

  key(e) {
    if (!this.u || !this.x.length) return;
    const n = this.x.length;
    let i = this.u.cursor.idx ?? n - 1;
    const half = this.range ? (this.range[1] - this.range[0]) / 2 : (this.x[n - 1] - this.x[0]) / 2;
    switch (e.key) {
      case "ArrowLeft": i = Math.max(0, i - 1); break;
      case "ArrowRight": i = Math.min(n - 1, i + 1); break;
      case "Home": i = 0; break;
      case "End": i = n - 1; break;
      case "ArrowUp": this.pick = (this.pick + this.rows.length - 1) % this.rows.length; break;
      case "ArrowDown": this.pick = (this.pick + 1) % this.rows.length; break;
      case "+": case "=": this.zoom(this.x[i] - half / 2, this.x[i] + half / 2); break;
      case "-": this.zoom(this.x[i] - half * 2, this.x[i] + half * 2); break;
      case "0": case "Escape": this.zoom(null); break;
      default: return;
    }
    e.preventDefault();
    this.u.setCursor({ left: this.u.valToPos(this.x[i], "x"), top: 4 });
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      const r = this.rows[this.pick];
      if (r) setText(this.sayEl, `${r.label}, ${this.at(i)}: ${this.value(r, i)}, ${i + 1} of ${n}`);
    }, 250);
  }

  /** table writes the drawn buckets, newest first, with the same numbers as the readout. */
  table() {
    if (!this.details.open || !this.rows) return;
    const limit = 200, n = this.x.length;
    const head = h("tr", {}, h("th", { scope: "col", class: "num" }, this.axis), ...this.rows.map((r) => h("th", { scope: "col", class: "num" }, r.label)));
    const body = h("tbody");
    for (let i = n - 1; i >= Math.max(0, n - limit); i--) {
      body.append(h("tr", {}, h("td", { class: "num" }, this.axis === "time" ? new Date(this.x[i] * 1000).toISOString().slice(0, 19) : figure(this.x[i])),
        ...this.rows.map((r) => h("td", { class: "num" }, r.raw[i] === null ? "–" : figure(r.raw[i])))));
    }
    const q = (m) => `/api/v1/series?runs=${this.run}&metric=${encodeURIComponent(m)}&x=${this.axis}&px=4000`;
    $(".table-wrap", this.details).replaceChildren(
      h("table", { class: "grid compact" }, h("thead", {}, head), body),
      h("p", { class: "muted" }, n > limit ? `The last ${limit} of ${count(n)} drawn points. ` : `${count(n)} points, never smoothed. `,
        ...this.series.flatMap((g) => [h("a", { href: q(g.line.metric) }, g.line.label + " as JSON"), " "])));
  }
}

/** start builds the page's charts when they come into view, and wires the tools above them. */
export function start() {
  document.body.append(probe);
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) {
      if (!e.isIntersecting || e.target.chart) continue;
      e.target.chart = new Chart(e.target);
      e.target.chart.load();
    }
  }, { rootMargin: "200px" });
  for (const el of document.querySelectorAll("[data-chart]")) seen.observe(el);
  const redraw = () => all.forEach((c) => { c.shape = ""; c.draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const tools = $("#chart-tools");
  if (!tools) return;
  tools.hidden = false;
  const reload = () => all.forEach((c) => { c.range = null; c.shape = ""; c.load(); });
  $("#smooth").addEventListener("input", (e) => {
    settings.smooth = Number(e.target.value);
    setText($("#smooth-value"), settings.smooth.toFixed(2));
    redraw();
  });
  $("#x-axis").addEventListener("change", (e) => { settings.x = e.target.value; reload(); });
  $("#log-x").addEventListener("change", (e) => { settings.logX = e.target.checked; redraw(); });
  $("#log-y").addEventListener("change", (e) => { settings.logY = e.target.checked; redraw(); });
  $("#per-task")?.addEventListener("change", (e) => { settings.each = e.target.value === "each"; reload(); });
}

/** append hands live points to every chart that shows their metric. */
export function append(items) {
  const by = new Map();
  for (const p of items) {
    if (!by.has(p.m)) by.set(p.m, []);
    by.get(p.m).push(p);
    if (!recent.has(p.m)) recent.set(p.m, []);
    const r = recent.get(p.m);
    r.push(p);
    if (r.length > 500) r.shift();
  }
  all.forEach((c) => c.live(by));
}

/** reloadAll asks the server again, after a resync or a new attempt. */
export function reloadAll() {
  recent.clear();
  all.forEach((c) => c.load());
}
