// The one websocket of a tab. Topics are subscribed with a cursor; a message is seen once and in order, and after a
// lost connection the stream goes on where it stopped or says that the page must ask again.
import { $, setText } from "app/dom";

const subs = new Map(); // topic -> {cursor, handlers}
let socket = null, state = "off", paused = false, tries = 0, timer = 0, since = 0, ticker = 0;

const box = $("#connection"), text = $("#connection-text"), pauseButton = $("#connection-pause");
const ago = document.createElement("span");

function show(next) {
  if (next !== state) since = Date.now();
  state = next;
  if (!box) return;
  box.dataset.state = { live: "live", lost: "lost", paused: "paused" }[next] || "off";
  setText(text, { live: "live", connecting: "connecting", paused: "paused, showing the last values", lost: "disconnected, showing the last values" }[next]);
  ago.hidden = next !== "lost";
  clearInterval(ticker);
  if (next === "lost") {
    const tick = () => setText(ago, Math.round((Date.now() - since) / 1000) + " s");
    tick();
    ticker = setInterval(tick, 1000);
  }
}

function send(order) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(order));
}

function sub(topic) {
  const t = subs.get(topic);
  const order = { op: "sub", topic };
  if (t.cursor !== null) order.cursor = t.cursor;
  send(order);
}

function open() {
  clearTimeout(timer);
  if (paused || !subs.size) return;
  if (state !== "lost") show("connecting");
  const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/api/v1/live");
  socket = ws;
  ws.onopen = () => {
    tries = 0;
    show("live");
    for (const topic of subs.keys()) sub(topic);
  };
  ws.onmessage = (e) => receive(JSON.parse(e.data));
  ws.onclose = (e) => {
    if (socket !== ws) return;
    socket = null;
    if (paused) return;
    show("lost");
    if (e.reason === "signed out") return setText(text, "signed out; reload the page to sign in");
    const wait = Math.min(15, 0.5 * 2 ** tries++) * (0.5 + Math.random() / 2);
    timer = setTimeout(open, wait * 1000);
  };
}

function receive(m) {
  const t = subs.get(m.topic);
  if (!t) return;
  if (m.kind === "resync") {
    t.cursor = m.seq || t.cursor;
    t.on.resync?.(m.data);
    return;
  }
  if (m.kind === "error") {
    t.on.error?.(m.data);
    return;
  }
  if (m.seq) {
    if (t.cursor !== null && m.seq <= t.cursor) return; // seen
    t.cursor = m.seq;
  }
  if (m.kind === "delta") t.on.delta?.(Array.isArray(m.data) ? m.data : [m.data]);
  else if (m.kind === "state") t.on.state?.(Array.isArray(m.data) ? m.data[m.data.length - 1] : m.data);
  else if (m.kind === "end") t.on.end?.();
}

/**
 * subscribe follows a topic. cursor is the seq to continue after; null begins now. Handlers: delta(items),
 * state(item), resync(), end(), error(data). It returns a function that unsubscribes.
 */
export function subscribe(topic, cursor, on) {
  subs.set(topic, { cursor, on });
  if (socket && socket.readyState === WebSocket.OPEN) sub(topic);
  else if (!socket) open();
  return () => {
    subs.delete(topic);
    send({ op: "unsub", topic });
  };
}

/** pause stops all updates until it is called again; the streams go on where they stopped. */
export function pause() {
  paused = !paused;
  if (pauseButton) setText(pauseButton, paused ? "Go on" : "Pause");
  if (paused) {
    const ws = socket;
    socket = null;
    ws?.close();
    clearTimeout(timer);
    show("paused");
  } else {
    tries = 0;
    open();
  }
}

if (box) {
  ago.setAttribute("aria-hidden", "true");
  ago.hidden = true;
  text.after(ago);
  setText(text, "connecting");
  pauseButton.hidden = false;
  pauseButton.addEventListener("click", pause);
  window.addEventListener("online", () => { if (!socket) { tries = 0; open(); } });
}
