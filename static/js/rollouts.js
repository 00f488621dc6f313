// The list of live rollouts: one line each, changed in place while it is being played.
import { $, h, letters, taskCode, fixed, clock, setText } from "app/dom";

const LIMIT = 60;
const ENDS = {
  completed: "failed", "task limit reached": "turn limit", turn_cap: "turn limit", "agent context limit": "too long",
  length_cap: "too long", "agent validation failed": "not valid", "agent invalid action": "bad action",
};

export class Rollouts {
  constructor(list) {
    this.list = list;
    this.lines = new Map();
    for (const li of list.children) this.lines.set(li.dataset.id, { li, done: true });
    setInterval(() => this.tick(), 1000);
  }

  take(items) {
    $("#rollouts-empty")?.remove();
    for (const it of items) this.one(it);
    this.trim();
  }

  one(it) {
    let line = this.lines.get(it.id);
    if (!line) {
      const li = h("li", { "data-id": it.id, class: "fresh" }, h("a", { href: "/trajectories/" + encodeURIComponent(it.id) }), letters(""), h("span", { class: "at" }), h("span", { class: "state" }));
      line = { li, shown: null };
      this.lines.set(it.id, line);
      const top = this.list.scrollTop;
      this.list.prepend(li);
      if (top > 0) this.list.scrollTop = top + li.offsetHeight; // what is being read stays where it is
    }
    const [a, , turn, state] = line.li.children;
    setText(a, `${taskCode(it.task)}#${it.sample}${it.phase === "eval" ? " eval" : ""}`);
    if (it.last) a.title = it.last;
    if (line.shown !== it.letters) {
      line.li.children[1].replaceWith(letters(it.letters));
      line.shown = it.letters;
    }
    setText(turn, "turn " + it.turn);
    line.started = it.started;
    line.done = it.status !== "running";
    if (!line.done) return setText(state, clock(Date.now() / 1000 - it.started));
    const r = it.reward ?? null;
    if (it.status === "completed" && r !== null && r > 0) state.replaceChildren(h("span", { class: "pass" }, fixed(r, 1) + " pass"));
    else setText(state, (r === null ? "" : fixed(r, 1) + " ") + (ENDS[it.status] || it.status));
  }

  tick() {
    for (const l of this.lines.values()) if (!l.done) setText(l.li.lastElementChild, clock(Date.now() / 1000 - l.started));
  }

  trim() {
    let over = this.lines.size - LIMIT;
    for (let li = this.list.lastElementChild; li && over > 0;) {
      const prev = li.previousElementSibling;
      if (this.lines.get(li.dataset.id)?.done && !li.contains(document.activeElement)) {
        this.lines.delete(li.dataset.id);
        li.remove();
        over--;
      }
      li = prev;
    }
  }
}
