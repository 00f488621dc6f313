// Form and file of a new run: a changed field is written into the file by the server, a changed file fills the fields,
// and both are checked by the same validation that the queue uses.
import { $, $$, h, setText } from "app/dom";

const form = $("#newrun"), yaml = $("#yaml"), stateEl = $("#draft-state"), list = $("#problems");
let turn = 0, timer = 0;

async function ask(path, value) {
  clearTimeout(timer);
  const n = ++turn;
  setText(stateEl, "checking");
  const body = new URLSearchParams({ yaml: yaml.value });
  if (path) { body.set("path", path); body.set("value", value); }
  try {
    const r = await fetch("/runs/draft", { method: "POST", body, headers: { Accept: "application/json" } });
    const a = await r.json();
    if (n !== turn) return;
    if (!r.ok) return problems([{ line: 0, path: a.error?.field || path || "", message: a.error?.message || `the server answered ${r.status}` }]);
    if (a.changed) yaml.value = a.yaml;
    fill(a.values, path);
    problems(a.problems);
  } catch {
    if (n === turn) setText(stateEl, "the server did not answer; nothing was checked");
  }
}

const holder = (path) => $$("[data-field]", form).find((el) => el.dataset.field === path);

function fill(values, except) {
  for (const [path, v] of Object.entries(values)) {
    const input = form.elements.namedItem(path);
    if (!input || input === document.activeElement || path === except || input.value === v) continue;
    if (input.tagName === "SELECT" && ![...input.options].some((o) => o.value === v)) input.append(new Option(v, v));
    input.value = v;
  }
  form.elements.namedItem("was").value = JSON.stringify(values);
}

/** problems shows each at its field and in the list, from which a line can be visited. */
function problems(all) {
  for (const el of $$("[data-field]", form)) {
    el.classList.remove("invalid");
    const input = $("input,select,textarea", el), note = $(".note", el);
    input?.removeAttribute("aria-invalid");
    if (note?.dataset.hint !== undefined) note.replaceChildren(note.dataset.hint);
  }
  for (const el of $$("[data-error-of]", form)) setText(el, "");
  for (const p of all) mark(p);
  setText(stateEl, all.length === 0 ? "the file is valid" : all.length === 1 ? "1 problem" : all.length + " problems");
  list.replaceChildren(...all.map((p) => h("li", { class: "error" },
    p.line ? h("button", { type: "button", class: "quiet", onclick: () => visit(p.line) }, "line " + p.line) : null,
    p.path ? h("code", {}, p.path) : null, " " + p.message)));
  $("#queue").disabled = all.length > 0;
}

function mark(p) {
  const pool = /^policy\.pool\.members\[\d+\]\.(weight|refresh_every)$/.exec(p.path);
  const el = holder(p.path) || (pool && holder(pool[1] === "weight" ? "pool:stale" : "pool:refresh"));
  if (!el || el.dataset.field === "tasks") {
    if (p.path.startsWith("tasks")) setText($("[data-error-of=tasks]", form), p.message);
    return;
  }
  el.classList.add("invalid");
  $("input,select,textarea", el)?.setAttribute("aria-invalid", "true");
  const note = $(".note", el);
  if (!note) return;
  if (note.dataset.hint === undefined) note.dataset.hint = note.textContent.trim();
  note.replaceChildren(h("span", { class: "error" }, p.message));
}

function visit(line) {
  const lines = yaml.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  yaml.focus();
  yaml.setSelectionRange(start, start + (lines[line - 1] || "").length);
  yaml.scrollTop = (line - 4) * parseFloat(getComputedStyle(yaml).lineHeight);
}

yaml.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => ask(), 350);
});
form.addEventListener("change", (e) => {
  const el = e.target;
  if (el === yaml || !el.name || ["experiment", "was", "forked_from"].includes(el.name)) return;
  ask(el.name, el.value).then(() => { if (el.name.startsWith("saved:")) el.value = ""; });
});
form.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) $("#queue").click();
  else if (e.key === "Enter" && e.target.tagName === "INPUT") {
    e.preventDefault(); // Enter in a field writes it into the file; queueing is its own button
    e.target.dispatchEvent(new Event("change", { bubbles: true }));
  }
});
ask();
