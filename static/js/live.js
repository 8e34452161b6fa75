// Live updates. The page names its stream in <body data-live>; every element with an id and data-v is a
// cell: when the server shows a newer data-v, the inside of that cell is replaced and nothing else moves.
//
// A message is {topic, id, version} (a hint: the page asks its own address again, as htmx does) or carries
// `html`, the cells themselves. The stream also sends "tick" events. When it fails, the page polls. A page
// whose one object is over carries [data-final] and asks no more. New rows of <tbody id data-live-rows>
// (rows have ids) wait behind a button. An answer with [data-live-url] names the stream from now on.

const POLL_MS = 5000;
const QUIET_MS = 20000; // after so long without a word the page asks by itself
const STALE_MS = 40000;
const APART_MS = 1000; // two refreshes are at least so far apart
const RETRY_MS = 15000;

const pill = document.querySelector("[data-live-pill]");
const pauseButton = document.querySelector("[data-live-pause]");
const waiting = new Map(); // id -> cell that had the focus, text or selection in it
const held = new Map(); // id -> new row that waits behind "n new, show"
const state = { source: null, heardAt: Date.now(), lastAsk: 0, timer: 0, broken: false, offline: false, paused: false, final: false };

// --- cells -----------------------------------------------------------------------------------------

function isBusy(cell) {
  if (cell.contains(document.activeElement) && cell !== document.activeElement) return true;
  if (cell.querySelector("dialog[open], .dropdown-menu.show, details[open][data-keep]")) return true;
  if ([...cell.querySelectorAll("input, textarea")].some(isChanged)) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(cell, true));
}

function isChanged(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}

function isLeaf(cell) {
  return !cell.querySelector("[id][data-v]");
}

function patch(fresh) {
  const cell = document.getElementById(fresh.id);
  if (!cell || !("v" in cell.dataset) || cell.dataset.v === fresh.dataset.v) return;
  if (isBusy(cell)) {
    waiting.set(fresh.id, fresh);
    return;
  }
  waiting.delete(fresh.id);
  for (const { name, value } of fresh.attributes) if (name !== "id") cell.setAttribute(name, value);
  for (const { name } of [...cell.attributes]) if (!fresh.hasAttribute(name) && name !== "data-at") cell.removeAttribute(name);
  const word = fresh.querySelector(".m-state");
  const before = cell.querySelector(".m-state")?.textContent.trim();
  cell.replaceChildren(...document.importNode(fresh, true).childNodes);
  cell.dispatchEvent(new CustomEvent("muster:patched", { bubbles: true }));
  if (word && before !== word.textContent.trim()) announce(cell, word.textContent.trim());
}

function patchWaiting() {
  setTimeout(() => [...waiting.values()].forEach(patch));
}

function announce(cell, word) {
  const region = document.querySelector("[data-announce]");
  const name = cell.closest("tr")?.querySelector(".m-name")?.textContent.trim() ?? "";
  if (region) region.textContent = name ? `${name}: ${word}` : word;
}

// A cell of cells is left alone, but not where the page still shows the empty place of it.
function isNew(fresh) {
  const shown = document.getElementById(fresh.id);
  return isLeaf(fresh) || Boolean(shown && isLeaf(shown));
}

function absorb(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  for (const fresh of box.content.querySelectorAll("[id][data-v]")) if (isNew(fresh)) patch(fresh);
  listenTo(box.content.querySelector("[data-live-url]")?.dataset.liveUrl);
  gatherRows(box.content);
  if (box.content.querySelector("[data-final]")) finish();
}

// --- new rows wait behind a button -------------------------------------------------------------------

function gatherRows(content) {
  const body = document.querySelector("tbody[data-live-rows]");
  const fresh = body && content.querySelector(`#${CSS.escape(body.id)}`);
  if (!fresh) return;
  for (const row of fresh.querySelectorAll(":scope > tr[id]")) if (!document.getElementById(row.id)) held.set(row.id, row);
  showCount();
}

function showCount() {
  const holder = document.querySelector("[data-live-new]");
  const button = holder?.querySelector("button");
  if (!button) return;
  holder.hidden = held.size === 0;
  button.textContent = held.size === 1 ? button.dataset.one : button.dataset.many.replace("{n}", held.size);
}

function showHeld() {
  const body = document.querySelector("tbody[data-live-rows]");
  body.prepend(...[...held.values()].map((row) => document.importNode(row, true)));
  body.querySelector(":scope > tr[data-empty]")?.remove();
  held.clear();
  showCount();
  body.querySelector("a")?.focus({ preventScroll: true });
}

// --- asking and listening ------------------------------------------------------------------------------

async function ask() {
  state.lastAsk = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { "HX-Request": "true", "X-Muster-Live": "true" }, credentials: "same-origin", redirect: "manual" });
    if (!answer.ok) throw new Error(String(answer.status));
    const html = await answer.text();
    if (!state.paused) absorb(html); // the pause may have come while it was under way
    heard();
  } catch {
    state.offline = true;
  }
  tell();
}

function askSoon() {
  if (state.timer || state.paused || state.final) return;
  const wait = Math.max(0, state.lastAsk + APART_MS - Date.now());
  state.timer = setTimeout(() => {
    state.timer = 0;
    if (!state.paused) ask();
  }, wait);
}

function heard() {
  state.heardAt = Date.now();
  state.offline = false;
}

function onMessage(event) {
  heard();
  const message = event.data ? JSON.parse(event.data) : {};
  if (message.html) absorb(message.html);
  else askSoon();
}

function open() {
  if (state.paused || state.final || document.hidden) return;
  state.source?.close();
  state.source = new EventSource(document.body.dataset.live);
  state.source.addEventListener("open", () => {
    state.broken = false;
    heard();
    askSoon(); // what happened before the stream was open was missed
  });
  state.source.addEventListener("message", onMessage);
  state.source.addEventListener("tick", heard);
  state.source.addEventListener("error", () => {
    state.broken = true;
    if (state.source?.readyState === EventSource.CLOSED) setTimeout(open, RETRY_MS);
  });
}

// What a page has to hear of changes with what it shows.
function listenTo(url) {
  if (!url || url === document.body.dataset.live) return;
  document.body.dataset.live = url;
  open();
}

function close() {
  state.source?.close();
  state.source = null;
}

function finish() {
  state.final = true;
  close();
  tell();
}

function pause() {
  state.paused = !state.paused;
  pauseButton.setAttribute("aria-pressed", String(state.paused));
  if (state.paused) close();
  else resume();
  tell();
}

function resume() {
  if (state.paused || state.final) return;
  open();
  askSoon();
}

// --- the pill --------------------------------------------------------------------------------------------

function tell() {
  if (!pill) return;
  const age = Math.round((Date.now() - state.heardAt) / 1000);
  const seconds = `${age} s`;
  let look = ["m-good", `${pill.dataset.liveWord}, ${seconds}`];
  if (state.final) look = ["", pill.dataset.finalWord];
  else if (state.paused) look = ["", pill.dataset.pausedWord];
  else if (state.offline) look = ["m-bad", pill.dataset.offlineWord];
  else if (age * 1000 > STALE_MS) look = ["m-warn", `${pill.dataset.staleWord} ${seconds}`];
  pill.className = `m-pill ${look[0]}`;
  if (pill.textContent !== look[1]) pill.textContent = look[1];
}

function beat() {
  tell();
  if (state.paused || state.final || document.hidden) return;
  const silent = Date.now() - Math.max(state.heardAt, state.lastAsk);
  if (silent > (state.broken || state.offline ? POLL_MS : QUIET_MS)) askSoon();
}

function start() {
  open();
  setInterval(beat, 1000);
  pauseButton?.addEventListener("click", pause);
  document.querySelector("[data-live-new] button")?.addEventListener("click", showHeld);
  document.addEventListener("focusout", patchWaiting);
  document.addEventListener("close", patchWaiting, true); // a dialog that closes has forgotten what was typed
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : resume()));
  addEventListener("pagehide", close);
  tell();
}

if (document.querySelector("main [data-final]")) finish();
else if (document.body.dataset.live) start();
