// Forms: the preview while typing, Form and YAML as two tabs of one document, rows of lists, group summaries.
//
//   form[data-preview-url]            posted (as HTML, HX-Request set) after each pause; answer -> [data-preview]
//   [data-spec-tabs][data-convert-url] posts the form with `to=form|yaml`; answer -> [data-spec-pane=to];
//                                     422 -> [data-spec-error], and the tab stays
//   [data-list] with <template>, [data-list-add]; rows with [data-list-remove], [data-list-up]
//   details[data-group="CPU {cpu}"]   its [data-group-summary] follows the fields and lists of those names

const PAUSE_MS = 300;
const previews = new WeakMap(); // form -> {timer, abort}

async function post(url, body, signal) {
  return fetch(url, { method: "POST", body, headers: { "HX-Request": "true" }, credentials: "same-origin", signal });
}

function previewSoon(form) {
  if (!form?.dataset.previewUrl) return;
  const before = previews.get(form);
  clearTimeout(before?.timer);
  before?.abort.abort();
  const abort = new AbortController();
  previews.set(form, { abort, timer: setTimeout(() => preview(form, abort.signal), PAUSE_MS) });
}

async function preview(form, signal) {
  const target = document.querySelector(form.dataset.previewTarget ?? "[data-preview]");
  target?.setAttribute("aria-busy", "true");
  try {
    const answer = await post(form.dataset.previewUrl, new FormData(form), signal);
    if (target && (answer.ok || answer.status === 422)) target.innerHTML = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") return;
  }
  target?.removeAttribute("aria-busy");
}

// --- Form | YAML -------------------------------------------------------------------------------------

async function switchTab(tabs, to) {
  const form = tabs.closest("form");
  const body = new FormData(form);
  body.set("to", to);
  const answer = await post(tabs.dataset.convertUrl, body);
  const text = await answer.text();
  const error = form.querySelector("[data-spec-error]");
  if (!answer.ok) {
    if (error && answer.status === 422) error.innerHTML = text;
    return;
  }
  error?.replaceChildren();
  form.querySelector(`[data-spec-pane="${to}"]`).innerHTML = text;
  showTab(tabs, form, to);
  previewSoon(form);
}

function showTab(tabs, form, to) {
  for (const pane of form.querySelectorAll("[data-spec-pane]")) {
    pane.hidden = pane.dataset.specPane !== to;
    for (const field of pane.querySelectorAll("input, select, textarea")) field.disabled = pane.hidden;
  }
  for (const tab of tabs.querySelectorAll("[data-spec-tab]")) {
    const chosen = tab.dataset.specTab === to;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) tab.focus();
  }
  const source = form.querySelector("[data-spec-source]");
  if (source) source.value = to;
  form.querySelectorAll("details[data-group]").forEach(summarise);
}

// --- lists -------------------------------------------------------------------------------------------

let rowNumber = 1000; // above any number that the server gave

function addRow(list) {
  const row = list.querySelector("template").content.cloneNode(true).firstElementChild;
  const number = rowNumber++;
  for (const part of [row, ...row.querySelectorAll("*")]) {
    for (const attribute of part.attributes) attribute.value = attribute.value.replaceAll("__index__", number);
  }
  list.querySelector("[data-list-rows]").append(row);
  row.querySelector("input, select, textarea")?.focus();
}

function removeRow(button) {
  const list = button.closest("[data-list]");
  button.closest("[data-list-row]").remove();
  (list.querySelector("[data-list-row]:last-child input") ?? list.querySelector("[data-list-add]"))?.focus();
}

function moveUp(button) {
  const row = button.closest("[data-list-row]");
  row.previousElementSibling?.before(row);
  button.focus();
}

// --- group summaries -----------------------------------------------------------------------------------

function summarise(group) {
  const words = group.querySelector("[data-group-summary]");
  const form = group.closest("form");
  if (!words || !form) return;
  words.textContent = group.dataset.group.split(", ").map((part) => filled(part, form)).filter(Boolean).join(", ") || "–";
}

// A part of a pattern ("shared {shared_memory}") is left out while none of its fields holds anything.
function filled(part, form) {
  let has = false;
  const text = part.replace(/\{(\w+)\}/g, (_whole, name) => {
    const value = valueOf(form.elements[name]) || listOf(form, name);
    has ||= Boolean(value);
    return value;
  });
  return has ? text.trim() : "";
}

function listOf(form, name) {
  const rows = form.querySelectorAll(`[data-list="${name}"] > [data-list-rows] > [data-list-row]`);
  return [...rows].map((row) => valueOf(row.querySelector("input, select, textarea"))).filter(Boolean).join(", ");
}

function valueOf(field) {
  if (!field) return "";
  if (field.selectedOptions) return [...field.selectedOptions].filter((option) => option.value).map((option) => option.textContent.trim()).join(", ");
  return field.value;
}

// --- wiring ------------------------------------------------------------------------------------------------

function changed(target) {
  const form = target.closest("form");
  form?.querySelectorAll("details[data-group]").forEach(summarise);
  previewSoon(form);
}

for (const kind of ["input", "change"]) document.addEventListener(kind, (event) => changed(event.target));
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("listAdd" in button.dataset) addRow(button.closest("[data-list]"));
  if ("listRemove" in button.dataset) {
    const form = button.closest("form");
    removeRow(button);
    changed(form);
  }
  if ("listUp" in button.dataset) {
    moveUp(button);
    changed(button);
  }
  if (button.dataset.specTab && button.getAttribute("aria-selected") !== "true") switchTab(button.closest("[data-spec-tabs]"), button.dataset.specTab);
});
document.addEventListener("keydown", (event) => {
  if (!event.target.dataset?.specTab || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  const tabs = [...event.target.closest("[data-spec-tabs]").querySelectorAll("[data-spec-tab]")];
  tabs.find((tab) => tab !== event.target)?.click();
});
for (const pane of document.querySelectorAll("[data-spec-pane][hidden]")) {
  for (const field of pane.querySelectorAll("input, select, textarea")) field.disabled = true;
}
document.querySelectorAll("details[data-group]").forEach(summarise);
document.querySelectorAll("form[data-preview-url]").forEach(previewSoon);
