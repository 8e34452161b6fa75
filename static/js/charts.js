// Charts. The server sends data and layout with symbolic colours ("s1", "target", "bad-fill", "s1/20" for
// 20 % of it); this module turns them into the theme's colours, draws, and draws again on change.

const me = document.querySelector("script[data-plotly]");
const SYMBOLS = { target: "ink-3", mark: "ink-3", nodata: "sunken" };
const LABEL_APART = 14; // px between two labels at the lines' ends
const NARROW = 500;
const versions = new Map();
let loading = null;

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--m-${SYMBOLS[name] ?? name}`).trim();
}

function colour(value) {
  const [name, share] = value.split("/");
  const found = token(name);
  if (!found) return value;
  if (!share) return found;
  const [r, g, b] = rgb(found);
  return `rgba(${r},${g},${b},${Number(share) / 100})`;
}

function rgb(hex) {
  const full = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1);
  return [0, 2, 4].map((at) => parseInt(full.slice(at, at + 2), 16));
}

// Walks a figure and resolves every value that stands under a key ending in "color" or in a colour scale.
function resolve(value, key = "") {
  if (typeof value === "string") return /color$/i.test(key) ? colour(value) : value;
  if (Array.isArray(value)) {
    if (/colorscale$/i.test(key)) return value.map(([at, name]) => [at, colour(name)]);
    return /color$/i.test(key) || value.some((part) => part && typeof part === "object") ? value.map((part) => resolve(part, key)) : value;
  }
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolve(part, name)]));
  return value;
}

function axis(own, extra = {}) {
  return { gridcolor: token("line"), linecolor: token("line"), zerolinecolor: token("line"), tickcolor: token("line"), fixedrange: true, automargin: true, ...extra, ...own };
}

function layoutOf(figure, id, width) {
  const own = resolve(figure.layout ?? {});
  const text = getComputedStyle(document.body).fontFamily;
  return {
    margin: { l: 40, r: 12, t: 8, b: 28 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    dragmode: false,
    hovermode: "x unified",
    hoverlabel: { bgcolor: token("raised"), bordercolor: token("line"), font: { color: token("ink"), family: text, size: 12 } },
    colorway: ["s1", "s2", "s3", "s4", "s5", "s6"].map(token),
    ...own,
    font: { family: text, size: 12, color: token("ink-2"), ...own.font },
    xaxis: axis(own.xaxis, { showgrid: false, tickangle: 0, nticks: width < NARROW ? 3 : 8, showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "solid", spikecolor: token("control") }),
    yaxis: axis(own.yaxis, { rangemode: "tozero" }),
    uirevision: "keep",
    datarevision: versions.get(id),
  };
}

function dataOf(figure) {
  return resolve(figure.data ?? []).map((trace) => (isLine(trace) ? { mode: "lines", connectgaps: false, ...trace, line: { width: 1.75, ...trace.line } } : trace));
}

function isLine(trace) {
  return (trace.type ?? "scatter") === "scatter";
}

// --- the name and the last value at each line's end --------------------------------------------------

function ends(data, unit) {
  const lines = data.filter((trace) => isLine(trace) && trace.name && trace.showlegend !== false && !trace.fill);
  return lines.map((trace) => endOf(trace, unit)).filter(Boolean);
}

function endOf(trace, unit) {
  const at = (trace.y ?? []).findLastIndex((value) => value !== null && value !== undefined);
  if (at < 0) return null;
  const value = trace.y[at];
  const shown = `${Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 10) / 10}${unit ? ` ${unit}` : ""}`;
  return { x: trace.x[at], y: value, text: `${escaped(trace.name)} ${shown}`, colour: trace.line?.color ?? token("ink-2") };
}

function escaped(text) {
  return String(text).replace(/[<>&]/g, (sign) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[sign]);
}

function spread(labels, range, height) {
  const place = (label) => (1 - (label.y - range[0]) / (range[1] - range[0] || 1)) * height;
  const sorted = labels.map((label) => ({ ...label, at: place(label) })).sort((a, b) => a.at - b.at);
  let last = -Infinity;
  for (const label of sorted) {
    label.shift = Math.max(0, last + LABEL_APART - label.at);
    last = label.at + label.shift;
  }
  const over = Math.max(0, last - height);
  return sorted.map((label) => ({ ...label, shift: label.shift - over }));
}

// The axis ends where the data ends, so that the labels stand beside the plot and not in it.
function extent(data) {
  const xs = data.flatMap((trace) => trace.x ?? []);
  if (!xs.length) return undefined;
  return [xs.reduce((least, x) => (x < least ? x : least)), xs.reduce((most, x) => (x > most ? x : most))];
}

function addEnds(box, data, layout) {
  const labels = ends(data, box.dataset.unit);
  if (!labels.length) return;
  const values = data.flatMap((trace) => (isLine(trace) ? trace.y ?? [] : [])).filter((value) => value !== null);
  layout.yaxis.range ??= [Math.min(0, ...values), Math.max(1e-9, ...values) * 1.08];
  layout.xaxis.range ??= extent(data);
  const height = box.clientHeight - layout.margin.t - layout.margin.b;
  const longest = Math.max(...labels.map((label) => label.text.length));
  layout.margin = { ...layout.margin, r: Math.min(box.clientWidth * 0.4, 28 + 6.6 * longest) };
  const drawn = spread(labels, layout.yaxis.range, height).map((label) => ({
    x: label.x, y: label.y, yshift: -label.shift, text: `<span style="color:${label.colour}"><b>—</b></span> ${label.text}`, showarrow: false, xanchor: "left", xshift: 4,
    font: { size: 11, color: token("ink-2") },
  }));
  layout.annotations = [...(layout.annotations ?? []), ...drawn];
}

// --- drawing ---------------------------------------------------------------------------------------------

function load() {
  loading ??= new Promise((done, failed) => {
    const rules = Object.assign(document.createElement("link"), { rel: "stylesheet", href: me.dataset.plotlyCss, id: "plotly.js-style-global", className: "no-inline-styles" });
    const script = Object.assign(document.createElement("script"), { src: me.dataset.plotly, onload: () => done(window.Plotly), onerror: failed });
    document.head.append(rules, script);
  });
  return loading;
}

function figureOf(box) {
  const script = document.getElementById(box.dataset.chart)?.querySelector("script");
  return script ? JSON.parse(script.textContent) : null;
}

async function draw(box) {
  const figure = figureOf(box);
  if (!figure) return;
  const Plotly = await load();
  versions.set(box.dataset.chart, (versions.get(box.dataset.chart) ?? 0) + 1);
  const data = dataOf(figure);
  const layout = layoutOf(figure, box.dataset.chart, box.clientWidth);
  addEnds(box, data, layout);
  const isNew = !box.classList.contains("js-plotly-plot");
  await Plotly.react(box, data, layout, { displayModeBar: false, responsive: true });
  if (isNew && box.dataset.chartGroup) shareCursor(Plotly, box);
  const table = box.closest(".m-chart")?.querySelector("[data-chart-table]");
  if (table?.open) fillTable(table, figure);
}

function shareCursor(Plotly, box) {
  const others = () => [...document.querySelectorAll("[data-chart-group]")].filter((one) => one !== box && one.dataset.chartGroup === box.dataset.chartGroup && one.classList.contains("js-plotly-plot"));
  box.on("plotly_hover", (event) => {
    if (!event.event) return; // ours, not a pointer's
    for (const other of others()) Plotly.Fx.hover(other, [{ xval: event.xvals?.[0] ?? event.points[0].x }]);
  });
  box.on("plotly_unhover", () => others().forEach((other) => Plotly.Fx.unhover(other)));
}

// --- the same figures as a table ----------------------------------------------------------------------------

function fillTable(details, figure) {
  const lines = (figure.data ?? []).filter((trace) => isLine(trace) && trace.name);
  const times = [...new Set(lines.flatMap((trace) => trace.x ?? []))].sort().reverse();
  const columns = lines.map((trace) => new Map((trace.x ?? []).map((x, at) => [x, trace.y[at]])));
  const table = document.createElement("table");
  table.className = "m-table";
  table.createTHead().append(rowOf("th", ["", ...lines.map((trace) => trace.name)]));
  const body = table.createTBody();
  for (const time of times) body.append(rowOf("td", [time, ...columns.map((column) => column.get(time) ?? "–")]));
  details.querySelector("div").replaceChildren(table);
}

function rowOf(tag, texts) {
  const row = document.createElement("tr");
  row.append(...texts.map((text, at) => Object.assign(document.createElement(tag), { textContent: text, className: at ? "m-num" : "" })));
  return row;
}

// --- when ---------------------------------------------------------------------------------------------------

const boxes = () => [...document.querySelectorAll("[data-chart]")];
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    draw(target);
  }
}, { rootMargin: "200px" });

function watch(within) {
  for (const box of within.querySelectorAll("[data-chart]")) seen.observe(box);
}

document.addEventListener("muster:patched", (event) => {
  const box = document.querySelector(`[data-chart="${CSS.escape(event.target.id)}"]`);
  if (box?.classList.contains("js-plotly-plot")) draw(box);
  else watch(event.target);
});
document.addEventListener("htmx:afterSwap", (event) => watch(event.target));
document.documentElement.addEventListener("muster:theme", () => boxes().filter((box) => box.classList.contains("js-plotly-plot")).forEach(draw));
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("[data-chart-table][open]")) return;
  const figure = figureOf(event.target.closest(".m-chart").querySelector("[data-chart]"));
  if (figure) fillTable(event.target, figure);
}, true);
watch(document);
