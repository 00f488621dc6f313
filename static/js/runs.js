// The runs table: rows follow the runs, and j and k move along them.
import { $, $$, throttle, refresh } from "app/dom";
import { subscribe } from "app/live";
import { bind } from "app/keys";

const update = throttle(() => {
  if ($("#runs-result")) refresh("#runs-result", "outerMorph");
  else if (!document.activeElement?.closest("form,dialog")) location.reload();
}, 1000);

subscribe("runs", null, { delta: update, resync: update });
// Progress is not announced on the list's topic; while something runs, the rows are read again now and then.
setInterval(() => {
  if (document.visibilityState === "visible" && $("#connection")?.dataset.state === "live" && $("#runs .chip.good, #runs .chip.caution")) update();
}, 5000);

function move(by) {
  const rows = $$("#runs a.row[href^='/runs/']");
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at + by))].focus();
}
bind({ j: () => move(1), k: () => move(-1), n: () => location.assign("/runs/new") });
