// The frame: theme switch, rail on narrow pages, dialogs, rows by keyboard, selection of rows.

const root = document.documentElement;
const YEAR_S = 31536000;

function chooseTheme(choice) {
  document.cookie = `muster_theme=${choice};path=/;max-age=${YEAR_S};samesite=lax`;
  root.dataset.mTheme = choice;
  root.dispatchEvent(new CustomEvent("muster:theme-choice"));
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    const chosen = button.dataset.themeChoice === choice;
    button.setAttribute("aria-pressed", String(chosen));
    const toggle = button.closest(".dropdown")?.querySelector("[data-bs-toggle]");
    if (chosen) toggle?.replaceChildren(button.querySelector("svg").cloneNode(true));
  }
}

function toggleRail(button) {
  const rail = document.getElementById(button.getAttribute("aria-controls"));
  button.setAttribute("aria-expanded", String(rail.toggleAttribute("data-open")));
}

// A dialog shows what is, not what was typed into it before and given up.
function forget(dialog) {
  for (const form of dialog.querySelectorAll("form")) form.reset();
}

function openDialog(dialog) {
  if (!dialog) return;
  forget(dialog);
  dialog.showModal();
}

document.addEventListener("close", (event) => forget(event.target), true); // it does not bubble

document.addEventListener("click", (event) => {
  const button = event.target.closest("button, [data-dialog-open]");
  if (!button) return;
  if (button.dataset.themeChoice) chooseTheme(button.dataset.themeChoice);
  if (button.dataset.dialogOpen) openDialog(document.getElementById(button.dataset.dialogOpen));
  if ("dialogClose" in button.dataset) button.closest("dialog").close();
  if ("railToggle" in button.dataset) toggleRail(button);
  if (button.dataset.copy) navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent);
});

// --- rows: the one the keyboard is at carries data-at ---------------------------------------------

function moveTo(row) {
  document.querySelector("tr[data-at]")?.removeAttribute("data-at");
  row.setAttribute("data-at", "");
  row.scrollIntoView({ block: "nearest" });
  row.querySelector(".m-name a, a.m-name, a")?.focus({ preventScroll: true });
}

function step(by) {
  const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("data-at"));
  moveTo(rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))]);
}

function selectRow() {
  document.querySelector("tr[data-at] input[type=checkbox]")?.click();
}

function openRow(event) {
  const row = document.querySelector("tr[data-at]");
  const onNothing = event.target === document.body;
  if (row && onNothing) row.querySelector(".m-name a, a.m-name, a")?.click();
}

function find() {
  const field = document.querySelector("[data-find]");
  field?.focus();
  field?.select();
}

function isTyping(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select");
}

const KEYS = {
  "/": find,
  j: () => step(1),
  k: () => step(-1),
  x: selectRow,
  Enter: openRow,
  "?": () => document.getElementById("keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    find();
    return;
  }
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key !== "Enter") event.preventDefault();
  act(event);
});

// --- selection: boxes named in [data-select] fill [data-action-bar] ---------------------------------

function countSelected() {
  for (const bar of document.querySelectorAll("[data-action-bar]")) {
    const chosen = document.querySelectorAll(`input[name="${bar.dataset.actionBar}"]:checked`).length;
    bar.hidden = chosen === 0;
    const words = bar.querySelector("[data-selected]");
    if (words) words.textContent = words.dataset.selected.replace("{n}", chosen);
  }
}

document.addEventListener("change", (event) => {
  const all = event.target.dataset?.selectAll;
  if (all) for (const box of document.querySelectorAll(`input[name="${all}"]`)) box.checked = event.target.checked;
  countSelected();
});
countSelected();

// A page that answers with errors starts at their list.
document.querySelector("[data-errors]")?.focus();
