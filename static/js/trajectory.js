// The page of an episode: moving along turns and members, the tokens on demand, and an episode that is being played.
import { $, $$, h, chip, fixed, setText, letterClass } from "app/dom";
import { bind } from "app/keys";
import { subscribe } from "app/live";

const head = $("#trajectory"), id = head.dataset.id, turns = $("#turns");

function current() { return $$(".turn").findIndex((t) => t.getAttribute("aria-current") === "true"); }

function select(i, scroll = true) {
  const all = $$(".turn");
  if (!all.length) return;
  i = Math.max(0, Math.min(all.length - 1, i));
  all.forEach((t, k) => (k === i ? t.setAttribute("aria-current", "true") : t.removeAttribute("aria-current")));
  if (scroll) {
    all[i].focus({ preventScroll: true });
    all[i].scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", "#" + all[i].id);
  }
}

turns.addEventListener("click", (e) => {
  const t = e.target.closest(".turn");
  if (t) select($$(".turn").indexOf(t), false);
});
const visit = (sel) => () => $(sel)?.click();
bind({ j: () => select(current() + 1), k: () => select(current() - 1), "[": visit("#member-prev"), "]": visit("#member-next"), t: toggleTokens });
if (location.hash.startsWith("#turn-")) select($$(".turn").findIndex((t) => "#" + t.id === location.hash), false);
else select(0, false);

// Tokens, fetched when asked for.
const box = $("#tokens"), show = $("#tokens-show"), by = $("#tokens-by"), ids = $("#tokens-raw"), readout = $("#tokens-readout");
let tokens = null;
if (show) {
  show.hidden = false;
  show.addEventListener("click", toggleTokens);
  by.addEventListener("change", drawTokens);
  ids.addEventListener("change", drawTokens);
}

async function toggleTokens() {
  if (!box) return;
  if (!box.hidden) return hideTokens(true);
  box.hidden = readout.hidden = false;
  setText(show.firstChild, "Hide tokens ");
  if (!tokens) {
    setText(readout, "reading the tokens");
    try {
      const r = await fetch(`/trajectories/${encodeURIComponent(id)}/tokens`, { headers: { Accept: "application/json" } });
      const a = await r.json();
      if (!r.ok) throw new Error(a.error?.message || `the server answered ${r.status}`);
      tokens = a.tokens;
    } catch (err) {
      setText(readout, "The tokens could not be read: " + err.message);
      return;
    }
  }
  by.disabled = ids.disabled = false;
  drawTokens();
  $("#tokens-section").scrollIntoView({ block: "nearest" });
}

function hideTokens() {
  box.hidden = readout.hidden = true;
  by.disabled = ids.disabled = true;
  setText(show.firstChild, "Show tokens ");
}

/** shade sorts a value into one of a few backgrounds; the exact value is read out on focus. */
function shade(t) {
  if (t.turn < 0) return "env";
  if (by.value === "lp" && t.logprob !== undefined) return t.logprob > -0.1 ? "b0" : t.logprob > -0.5 ? "b1" : t.logprob > -1.5 ? "b2" : t.logprob > -3 ? "b3" : "b4";
  if (by.value === "adv" && t.advantage !== undefined) return t.advantage > 0 ? "pos" : t.advantage < 0 ? "neg" : "b0";
  if (by.value === "ratio" && t.train_logprob !== undefined) {
    const d = Math.abs(t.train_logprob - t.logprob);
    return d < 0.02 ? "b0" : d < 0.1 ? "b1" : d < 0.2 ? "b2" : d < 0.5 ? "b3" : "b4";
  }
  return "b0";
}

const hex = (c, n) => c.charCodeAt(0).toString(16).toUpperCase().padStart(n, "0");
const visible = (s) => s.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (c) => "\\x" + hex(c, 2))
  .replace(/[\u0080-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ad]/g, (c) => "\\u" + hex(c, 4));

function drawTokens() {
  if (!tokens) return;
  const parts = [];
  let turn = null;
  tokens.forEach((t, i) => {
    if (t.turn !== turn && t.turn >= 0) parts.push(h("span", { class: "p " + letterClass(t.letter) }, t.letter));
    turn = t.turn;
    const label = ids.checked || !t.text ? `${t.id} ` : visible(t.text);
    const el = h("span", { class: "tok " + shade(t), "data-i": i }, label);
    if (t.turn >= 0) { el.tabIndex = -1; }
    parts.push(el);
  });
  box.replaceChildren(...parts);
  const first = $(".tok[tabindex]", box);
  if (first) first.tabIndex = 0;
  setText(readout, "Focus or point at a token to read its values.");
}

function read(el) {
  const i = Number(el.dataset.i), t = tokens[i];
  const parts = [`token ${i}`, `id ${t.id}`];
  if (t.text) parts.push(JSON.stringify(t.text));
  if (t.turn < 0) parts.push("not sampled, mask 0");
  else {
    parts.push(`turn ${t.turn + 1} by ${t.letter}`, `log-prob ${fixed(t.logprob, 4)}`, `probability ${fixed(Math.exp(t.logprob), 4)}`);
    if (t.train_logprob !== undefined) parts.push(`at training ${fixed(t.train_logprob, 4)}`, `ratio ${fixed(Math.exp(t.train_logprob - t.logprob), 4)}`);
    if (t.advantage !== undefined) parts.push(`advantage ${fixed(t.advantage, 4)}`);
    if (!t.trainable) parts.push("not trained on");
  }
  setText(readout, parts.join(" · "));
}

if (box) {
  box.addEventListener("focusin", (e) => e.target.dataset.i && read(e.target));
  box.addEventListener("mouseover", (e) => e.target.dataset?.i && read(e.target));
  box.addEventListener("keydown", (e) => {
    if (e.key !== "ArrowRight" && e.key !== "ArrowLeft") return;
    const all = $$(".tok[tabindex]", box), i = all.indexOf(document.activeElement) + (e.key === "ArrowRight" ? 1 : -1);
    if (i < 0 || i >= all.length) return;
    e.preventDefault();
    document.activeElement.tabIndex = -1;
    all[i].tabIndex = 0;
    all[i].focus();
  });
}

// An episode that is being played: its turns come from the live topic, from the first one on.
function exact(cls, text) { return h("div", { class: cls }, visible(text || "")); }

function callText(c) {
  try {
    const a = JSON.parse(c.arguments), v = Object.values(a);
    if (v.length === 1 && typeof v[0] === "string") return visible(v[0]);
    return visible(Object.entries(a).map(([k, x]) => k + "=" + JSON.stringify(x)).join(", "));
  } catch { return visible(c.arguments || ""); }
}

function liveTurn(u) {
  if ($("#turn-" + u.index)) return;
  const says = h("div", { class: "says" });
  if (u.message?.content) says.append(exact("said", u.message.content));
  for (const c of u.message?.tool_calls || []) says.append(h("p", { class: "call" }, h("span", { class: "name" }, visible(c.name)), "(" + callText(c) + ")"));
  if (u.parse_error) says.append(h("p", { class: "error" }, "Not understood: " + visible(u.parse_error)));
  for (const m of u.replies || []) says.append(exact("obs", m.content));
  says.append(h("p", { class: "turn-facts" }, h("span", {}, `${u.policy_id} v${u.policy_version}`), h("span", {}, `tokens ${u.token_end - u.token_start}`)));
  turns.append(h("li", { class: "turn fresh", id: "turn-" + u.index, tabindex: -1 },
    h("div", { class: "gutter" }, h("a", { class: "n", href: "#turn-" + u.index, "aria-label": "Turn " + (u.index + 1) }, String(u.index + 1)), h("span", { class: "p " + letterClass(u.letter) }, u.letter)), says));
}

if (head.hasAttribute("data-live")) {
  const note = $("#live-note");
  subscribe("trajectory/" + id, 0, {
    delta(items) {
      for (const it of items) {
        if (it.open && !$("#opening").childElementCount) {
          for (const m of it.open) $("#opening").append(h("p", { class: "who" }, m.role), exact("obs", m.content));
        }
        if (it.turn) liveTurn(it.turn);
        if (it.status && it.status !== "running") ended(it.status);
      }
    },
    resync: () => setText(note, "Earlier turns were written before this page was opened; all of them appear once the episode is stored."),
    end: () => ended("ended"),
  });
  const ended = (status) => {
    $("#trajectory-status").replaceChildren(chip("information", status, "stored with the next step"));
    setText(note, "The episode has ended. Reload the page once its step is stored to see its reward, advantages and tokens.");
    poll();
  };
  let polling = 0;
  const poll = () => {
    if (polling) return;
    polling = setInterval(async () => {
      const r = await fetch("/api/v1/trajectories/" + encodeURIComponent(id), { headers: { Accept: "application/json" } }).catch(() => null);
      if (r?.ok) location.reload();
    }, 5000);
  };
}
