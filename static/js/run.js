// The page of a run: its state, curves, rollouts and log, as they change.
import { $, $$, h, chip, count, fixed, span, setText, throttle, refresh } from "app/dom";
import { subscribe, pause } from "app/live";
import { bind, openDialog } from "app/keys";
import * as charts from "app/chart";
import { Rollouts } from "app/rollouts";

const head = $("#run"), id = head.dataset.run, base = "/runs/" + id;
let state = head.dataset.state, attempt = Number(head.dataset.attempt);

const TONES = { running: "good", stopping: "caution", failed: "bad", finished: "information" };
const of = (n, total) => (total > 0 ? `${count(n)} of ${count(total)}` : count(n));

function detail(it) {
  if (it.state === "running" || it.state === "stopping") {
    if (it.phase === "warmup") return "warm start " + of(it.warmup, it.warmups);
    if (it.phase === "eval") return "evaluating at step " + count(it.step);
    return it.phase === "rl" ? "step " + of(it.step, it.steps) : "starting";
  }
  return it.step > 0 ? "step " + of(it.step, it.steps) : "";
}

function status(it) {
  $("#run-status").replaceChildren(chip(TONES[it.state] || "idle", it.state, detail(it)));
  setText($("#run-eta"), it.state === "running" && it.eta >= 0 ? `about ${span(it.eta)} left${it.phase === "warmup" ? " of the warm start" : ""}` : "");
  const bar = $("#run-progress");
  bar.max = Math.max(1, it.phase === "warmup" ? it.warmups : it.steps);
  bar.value = it.phase === "warmup" ? it.warmup : it.step;
  const now = (k, v) => setText($(`[data-now="${k}"]`), v);
  now("in_flight", count(it.in_flight));
  now("waiting", count(it.waiting));
  if (it.step > 0) {
    now("pass", fixed(it.pass, 3));
    now("reward", fixed(it.reward, 3));
  }
  if (it.eval >= 0) now("eval", fixed(it.eval, 3));
  if (it.attempt !== attempt) {
    attempt = it.attempt;
    charts.reloadAll();
  }
  if (it.state !== state) {
    state = it.state;
    redrawHead();
  }
}

// Actions and facts depend on the state; they come from the server, and only when nobody is using them.
const redrawHead = throttle(async () => {
  if (!(await refresh("#run"))) setTimeout(redrawHead, 2000);
}, 500);

subscribe(`run/${id}/status`, null, { state: status, delta: (items) => status(items[items.length - 1]), resync: redrawHead });
// The end of a run is announced on the list's topic, by the worker that let go of it.
subscribe("runs", null, {
  delta(items) {
    const it = items.findLast((x) => x.id === id);
    if (!it || !it.state || it.state === state) return;
    state = it.state;
    redrawHead();
  },
  resync: redrawHead,
});

if ($("[data-chart]")) {
  charts.start();
  const spans = new Map($$("[data-metric]").map((el) => [el.dataset.metric, el]));
  subscribe(`run/${id}/metrics`, null, {
    delta(items) {
      charts.append(items);
      for (const p of items) {
        const el = spans.get(p.m);
        if (el && p.v !== null) setText(el, fixed(p.v, Number(el.dataset.decimals)));
      }
    },
    resync: charts.reloadAll,
  });
}

const list = $("#rollouts");
if (list) {
  const rollouts = new Rollouts(list);
  subscribe(`run/${id}/rollouts`, null, { delta: (items) => rollouts.take(items), resync() {} });
}

const log = $("#log");
if (log) {
  const seen = () => Number(log.lastElementChild?.dataset.event || 0);
  const add = (e) => {
    if (e.id && e.id <= seen()) return;
    const at = e.at.replace("T", " ").slice(0, 19);
    log.append(h("li", { class: e.level + " fresh", "data-event": e.id }, h("time", { datetime: e.at }, at),
      h("span", { class: "kind" }, ({ warn: "warning: ", error: "error: " }[e.level] || "") + e.kind), h("p", {}, e.message)));
  };
  subscribe(`run/${id}/events`, null, { delta: (items) => items.forEach(add), resync: () => refresh("#log") });
}

const tab = (path) => () => location.assign(base + path);
bind({
  1: tab(""), 2: tab("/rollouts"), 3: tab("/groups"), 4: tab("/evaluations"), 5: tab("/config"), 6: tab("/attempts"), 7: tab("/log"),
  s: () => openDialog("confirm-stop"), f: () => location.assign("/runs/new?fork=" + id), p: pause,
});
