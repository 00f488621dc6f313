// The queue and the workers: the list follows what the page's topic announces.
import { $$, throttle, refresh } from "app/dom";
import { subscribe } from "app/live";

for (const el of $$("[data-follow]")) {
  const update = throttle(() => refresh("#" + el.id, "outerMorph"), 1000);
  subscribe(el.dataset.follow, null, { delta: update, state: update, resync: update });
}
