// What works on every page: dialogs, shortcuts, the palette, copying.
import { $, $$, h } from "app/dom";

const OFF = "agentrl.keys-off";
const typing = (el) => el && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName));
const bindings = new Map();
let pending = "", pendingTimer = 0;

/** bind registers single keys ("j") and sequences ("g r"). Typing in a field never triggers them. */
export function bind(map) {
  for (const [k, f] of Object.entries(map)) bindings.set(k, f);
}

document.addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
    e.preventDefault();
    return openDialog("palette");
  }
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || typing(e.target) || $("dialog[open]")) return;
  if (localStorage.getItem(OFF) === "1") return;
  const press = pending ? pending + " " + e.key : e.key;
  clearTimeout(pendingTimer);
  pending = "";
  if (bindings.has(press)) {
    e.preventDefault();
    return bindings.get(press)(e);
  }
  if ([...bindings.keys()].some((k) => k.startsWith(press + " "))) {
    pending = press;
    pendingTimer = setTimeout(() => (pending = ""), 1200);
  }
});

const go = (href) => () => location.assign(href);
bind({
  "?": () => openDialog("keys"),
  "/": () => openDialog("palette"),
  "g r": go("/runs"), "g e": go("/experiments"), "g q": go("/queue"), "g w": go("/workers"), "g m": go("/saved"), "g s": go("/settings"),
});

export function openDialog(id) {
  const d = document.getElementById(id);
  if (!d || d.open) return;
  d.showModal();
  if (id === "palette") searchSoon(0);
}

document.addEventListener("click", (e) => {
  const open = e.target.closest?.("[data-open]");
  if (open) return openDialog(open.dataset.open);
  const close = e.target.closest?.("[data-close]");
  if (close) return close.closest("dialog")?.close();
  const copy = e.target.closest?.("[data-copy],[data-copy-link],[data-copy-text]");
  if (copy) return copyFrom(copy);
  if (e.target.tagName === "DIALOG") e.target.close(); // the backdrop
  for (const m of $$("details.menu[open]")) if (!m.contains(e.target)) m.open = false;
});

// A button that asks first: with scripts it opens its dialog, without it posts.
document.addEventListener("submit", (e) => {
  const id = e.target.dataset?.confirm;
  if (!id) return;
  e.preventDefault();
  openDialog(id);
});

async function copyFrom(el) {
  const text = el.dataset.copyText ?? (el.dataset.copy ? $(el.dataset.copy).textContent : location.origin + location.pathname + location.hash);
  const was = el.textContent;
  try {
    await navigator.clipboard.writeText(text);
    el.textContent = "Copied";
  } catch {
    el.textContent = "Could not copy";
  }
  setTimeout(() => (el.textContent = was), 1500);
}

for (const el of $$("[data-open],[data-copy],[data-copy-link]")) el.hidden = false;
const off = $("#keys-off");
if (off) {
  off.checked = localStorage.getItem(OFF) === "1";
  off.addEventListener("change", () => localStorage.setItem(OFF, off.checked ? "1" : "0"));
}

// The palette: pages, actions of this page, runs and trajectories.
const input = $("#palette-input"), list = $("#palette-list");
let items = [], at = 0, timer = 0, asked = 0;

function places(q) {
  const out = $$(".rail a, .tabs a, .actions a.button").map((a) => ({ text: a.firstChild.textContent.trim() || a.textContent.trim(), hint: "page", href: a.href }));
  for (const f of $$(".actions form[data-confirm]")) out.push({ text: f.textContent.trim(), hint: "action", run: () => openDialog(f.dataset.confirm) });
  return out.filter((x) => x.text && x.text.toLowerCase().includes(q.toLowerCase()));
}

function searchSoon(ms) {
  clearTimeout(timer);
  timer = setTimeout(search, ms);
}

async function search() {
  const q = input.value.trim(), n = ++asked;
  draw(places(q));
  try {
    const r = await fetch("/palette?q=" + encodeURIComponent(q), { headers: { Accept: "application/json" } });
    if (!r.ok || n !== asked) return;
    draw([...(await r.json()).items, ...places(q)]);
  } catch { /* pages and actions are still there */ }
}

function draw(next) {
  items = next.slice(0, 12);
  at = 0;
  list.replaceChildren(...items.map((it, i) => h("li", { role: "option", id: "palette-" + i, "aria-selected": String(i === at), onclick: () => choose(i) },
    h("span", {}, it.text), h("span", { class: "muted" }, it.hint))));
  mark();
}

function mark() {
  [...list.children].forEach((li, i) => li.setAttribute("aria-selected", String(i === at)));
  if (items.length) input.setAttribute("aria-activedescendant", "palette-" + at);
  else input.removeAttribute("aria-activedescendant");
}

function choose(i) {
  const it = items[i];
  if (!it) return;
  $("#palette").close();
  if (it.run) it.run();
  else location.assign(it.href);
}

if (input) {
  input.addEventListener("input", () => searchSoon(120));
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      at = Math.max(0, Math.min(items.length - 1, at + (e.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (e.key === "Enter") {
      e.preventDefault();
      choose(at);
    }
  });
}
