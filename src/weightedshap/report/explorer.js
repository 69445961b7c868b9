// The explorer of single rows, and the handlers of user input.

const OF_FEATURES = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY];
const MOST_LISTED = 500, MOST_STEPS = 11;

// Rows that a query finds: a row number or label; a prediction, a bound or a range; else text in names and values.
function matches(query) {
  const every = head.rows.map((_, row) => row), text = query.trim().toLowerCase();
  const prediction = (row) => one("prediction", row);
  const bound = text.match(/^([<>])\s*(-?[\d.]+(?:e[+-]?\d+)?)$/);
  const range = text.match(/^(-?[\d.]+?)\s*\.\.\s*(-?[\d.]+)$/);
  if (bound) return every.filter((row) => (bound[1] === ">" ? 1 : -1) * (prediction(row) - Number(bound[2])) > 0);
  if (range) return every.filter((row) => prediction(row) >= Number(range[1]) && prediction(row) <= Number(range[2]));
  const name = text.replace(/^(#|row )/, "");
  const numbered = every.filter((row) => String(head.rows[row]) === name || head.labels?.[row].toLowerCase() === name);
  if (numbered.length) return numbered;
  const decimals = text.match(/^-?\d*\.(\d+)$/)?.[1].length;
  const rounded = (row) => decimals && prediction(row).toFixed(decimals) === Number(text).toFixed(decimals);
  const holds = (cell, c) => `${head.columns[c]} = ${cell}`.toLowerCase().includes(text);
  const weighed = (row) => [gameOf(row), weightOf(row)].some((each) => each.toLowerCase() === text);
  return every.filter((row) => text === "" || rounded(row) || weighed(row) || head.cells[row].some(holds));
}

// The game and the weight that were chosen for a row; the game is named only where several compete.
const gameOf = (row) => head.games?.[row][state.output] ?? "";
const weightOf = (row) => head.weights[row][state.output].replace(`${gameOf(row)} · `, "");
const inWords = (row) => head.words[head.weights[row][state.output]];

function search() {
  const gain = (row) => area(slice("shapley_curve", row)) - area(slice("curve", row));
  const key = { prediction: (row) => one("prediction", row), gain }[$("list-order").value];
  state.found = matches($("search").value);
  if (key) state.found.sort((a, b) => key(b) - key(a));
  showList();
  if (state.found.length && !state.found.includes(state.row)) pick(state.found[0]);
  else markRow();
}

function showList() {
  const shown = state.found.slice(0, MOST_LISTED), rest = state.found.length - shown.length;
  $("list").replaceChildren(...shown.map((row) => {
    const prediction = node("span", {}, number(one("prediction", row), 3));
    const button = node("button", { type: "button" }, isolated(rowName(row)), prediction);
    button.dataset.row = row;
    return button;
  }));
  $("found").textContent = state.found.length === 0 ? "No row fits. Try a number, >0.5, or a word."
    : plural(state.found.length, "row") + (rest > 0 ? `, the first ${MOST_LISTED} listed` : "");
}

// Shows where we are. The list is one stop of the tab key: the chosen row, or the first.
function markRow(focus = false) {
  const buttons = [...$("list").children], at = state.found.indexOf(state.row);
  buttons.forEach((button, place) => {
    button.tabIndex = place === Math.max(at, 0) ? 0 : -1;
    button.setAttribute("aria-current", place === at);
  });
  const current = buttons[at];
  if (current) {
    const list = $("list"), top = current.offsetTop - list.offsetTop;
    list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + current.offsetHeight - list.clientHeight));
    if (focus) current.focus({ preventScroll: true });
  }
  $("previous").disabled = at <= 0;
  $("next").disabled = at >= state.found.length - 1;
}

function pick(row, focus = false) {
  state.row = row;
  markRow(focus);
  showRow();
}

function move(step, focus = false) {
  const at = state.found.indexOf(state.row) + step;
  if (at >= 0 && at < state.found.length) pick(state.found[at], focus);
}

function showRow() {
  const of = head.outputs.length > 1 ? [" of ", isolated(head.outputs[state.output])] : [];
  const [scaled, judged] = head.scales, game = head.games ? `Explained by ${gameOf(state.row)} · ` : "";
  const other = scaled === judged ? "" : `, ${judged} ${number(one("judged"))}`;
  const found = `: ${scaled} ${number(one("prediction"))}${other}`;
  $("row-title").replaceChildren(isolated(rowName(state.row)), found, ...of);
  $("row-facts").textContent = `${game}Chosen weight ${weightOf(state.row)}: ${inWords(state.row)} · area under the recovery ` +
    `error ${number(area(slice("curve")))} (${shapleyName()} ${number(area(slice("shapley_curve")))}), ` +
    `judged by ${head.judge}`;
  showWaterfall();
  showRowRecovery();
  showSizes();
  showTable();
  showValues();
}

// Leading features and the others together: from v(∅) to f(x), multiplied by the row's factor so that they add up; or,
// where the row has none, each from 0, and the unattributed rest in a bar of its own.
function waterfallSteps() {
  const factor = one("factor"), runs = Number.isFinite(factor), by = runs ? factor : 1;
  const phi = slice("phi").map((each) => by * each), order = Array.from(slice("order")), error = slice("error");
  const top = order.slice(0, order.length > MOST_STEPS ? MOST_STEPS - 1 : MOST_STEPS), others = order.slice(top.length);
  const steps = top.map((i) => ({
    name: `${head.features[i]}${value(state.row, i) === null ? "" : ` = ${value(state.row, i)}`}`,
    full: withValue(state.row, i), size: phi[i], half: 1.96 * by * (error?.[i] || 0),
  }));
  if (others.length) {
    steps.push({ name: plural(others.length, "other feature"), size: sum(others.map((i) => phi[i])), half: 0 });
  }
  if (!runs) steps.push({ name: "not attributed", size: one("gap"), half: 0, colour: GREY });
  let level = runs ? one("base") : 0;
  return steps.map((step) => ({
    colour: step.size >= 0 ? RAISES : LOWERS, full: label(step.name), short: axisName(step.name), ...step,
    from: level, to: level + step.size, next: level = runs ? level + step.size : 0,
  }));
}

function showWaterfall() {
  const steps = waterfallSteps(), base = one("base"), prediction = one("prediction"), factor = one("factor");
  const each = (name) => steps.map((step) => step[name]), runs = Number.isFinite(factor);
  const ends = [...(runs ? [base, prediction] : [0]), ...each("to")], low = Math.min(...ends), high = Math.max(...ends);
  const room = (narrow() ? 0.5 : 0.14) * (high - low || 1);
  const foot = steps.length - 0.4, sampled = each("half").some((half) => half > 0);
  const line = (x) => ({ type: "line", x0: x, x1: x, y0: -0.6, y1: foot, line: { width: 1, dash: "dot" } });
  const name = (x, text, outwards) => ({ x, y: foot, yanchor: "top", xanchor: outwards, text, showarrow: false });
  const [left, right] = prediction >= base ? ["right", "left"] : ["left", "right"];
  const listed = steps.map((step) => `${step.name} ${signed(step.size)}`).join(", ");
  const how = !runs ? "φ* does not add up to f(x): bars from 0; grey: not attributed"
    : Math.abs(factor - 1) < 1e-5 ? "" : `φ* × ${number(factor, 2)}, so that it adds up to f(x)`;
  $("waterfall-note").textContent = [
    `v(∅) = ${number(base)}, f(x) = ${number(prediction)}`, how, sampled ? "thin lines are 95 % intervals" : "",
  ].filter(Boolean).join("; ");
  const miss = slice("curve").at(-1), largest = Math.max(...slice("curve"));
  $("judge-miss").textContent = miss > 1e-4 * largest
    ? `With all features known the judge still misses ${number(miss, 3)} of this row's f(x), as ${head.scales[1]}.`
    : "With all features known the judge gives this row's f(x).";
  const drawn = `${runs ? `From ${number(base)} to the prediction ${number(prediction)}` : "Attributions"}: ${listed}`;
  draw("waterfall", drawn, [{
    type: "bar", orientation: "h", y: steps.map((_, place) => place), x: each("size"), base: each("from"), width: 0.62,
    marker: {
      color: each("colour"), pattern: { shape: steps.map((step) => (step.colour === GREY ? "/" : "")), fillmode: "overlay", fgcolor: "white" },
    },
    customdata: each("full"), hovertemplate: "%{customdata}<br>%{text}<extra></extra>",
    text: each("size").map(signed), textposition: "outside", cliponaxis: false,
    error_x: { type: "data", array: each("half"), visible: sampled, color: GREY, thickness: 1.2, width: 3 },
  }], {
    yaxis: { ...categories(each("name"), each("short")), range: [steps.length + 0.3, -0.6] },
    xaxis: { range: [low - room, high + room], title: { text: scale() } },
    shapes: (runs ? [base, prediction] : [0]).map(line),
    annotations: runs ? [name(base, "v(∅)", left), name(prediction, "f(x)", right)] : [],
  }, barHeight(each("short"), 90));
}

function showRowRecovery() {
  const curves = [["WeightedSHAP", Array.from(slice("curve"))], ["Shapley", Array.from(slice("shapley_curve"))]];
  const areas = curves.map(([name, curve]) => `${name} ${number(area(curve))}`).join(", ");
  const what = `Recovery error of ${rowName(state.row)}; areas: ${areas}`;
  const misfit = curves[0][1].at(-1) * (curves[0][1].length - 1) / area(curves[1][1]);
  drawRecovery("row-recovery", what, { curves, misfit }, `|f(x) − v(top k)| (${label(head.scales[1])})`, 440);
}

function showSizes() {
  const delta = slice("sizes");
  if (!delta) {
    $("sizes").replaceChildren(quiet("Δ was not kept. Explain with keep_contributions=True to see it here."));
    return;
  }
  const weight = Array.from(slice("weight")), count = weight.length, j = weight.map((_, size) => size + 1);
  const top = Array.from(slice("order").subarray(0, delta.length / count));
  const traces = top.map((i, place) => ({
    type: "scatter", mode: count <= 15 ? "lines+markers" : "lines", name: wrapped(head.features[i] || "(no name)", 20), x: j,
    y: Array.from(delta.subarray(place * count, (place + 1) * count)), marker: { size: 4 },
    line: { color: OF_FEATURES[place % OF_FEATURES.length], dash: place < OF_FEATURES.length ? "solid" : "dash", width: 1.8 },
    hovertemplate: `${label(head.features[i])}<br>size %{x}: %{y:.4g}<extra></extra>`,
  }));
  traces.push({
    type: "bar", name: "chosen weight", x: j, y: weight, yaxis: "y2", width: 1, marker: { color: "rgba(140,145,150,0.35)" },
    hovertemplate: "weight of size %{x}: %{y:.3g}<extra></extra>",
  });
  draw("sizes", `Marginal contribution by size of ${top.map((i) => head.features[i]).join(", ")}`, traces, {
    xaxis: {
      title: { text: "size j: added to j − 1 others" }, tickformat: "d", showgrid: false, range: [0.5, count + 0.5],
    },
    yaxis: { title: { text: `Δ (${scale()})` }, zeroline: true },
    yaxis2: { overlaying: "y", visible: false, fixedrange: true, range: [0, 4 * Math.max(...weight)] },
  }, 440);
}

const COLUMNS = {
  rank: "rank", feature: "feature", value: "value", phi: "φ*", shapley: "Shapley", shapleyRank: "Shapley rank",
  error: "std. error",
};
const FALLING = ["phi", "shapley", "error"]; // the largest first, when sorted for the first time

// Ranks 1..d of an order of the features.
function ranks(order) {
  const found = [];
  order.forEach((i, place) => { found[i] = place + 1; });
  return found;
}

function tableRows() {
  const phi = slice("phi"), shapley = slice("shapley"), error = slice("error"), rank = ranks(slice("order"));
  const places = head.features.map((_, i) => i);
  const shapleyRank = ranks(places.sort((a, b) => Math.abs(shapley[b]) - Math.abs(shapley[a]) || a - b));
  return head.features.map((feature, i) => ({
    feature, value: value(state.row, i), phi: phi[i], shapley: shapley[i], rank: rank[i], shapleyRank: shapleyRank[i],
    error: error ? error[i] : NaN,
  }));
}

// Numbers by size, other values by the alphabet; what is missing comes last, whichever way.
function compared(a, b) {
  const [x, y] = [a[state.sort], b[state.sort]];
  const missing = (cell) => cell === null || cell === "missing" || Number.isNaN(cell);
  if (missing(x) || missing(y)) return missing(x) - missing(y) || a.rank - b.rank;
  const order = Number.isNaN(x - y) ? String(x).localeCompare(String(y)) : x - y;
  return (state.ascending ? order : -order) || a.rank - b.rank;
}

function showTable() {
  const absent = [slice("error") ? "" : "error", head.columns.length ? "" : "value"];
  const shown = Object.keys(COLUMNS).filter((name) => !absent.includes(name));
  const rows = tableRows().sort(compared);
  const show = Object.fromEntries(FALLING.map((name) => [name, aligned(rows.map((row) => row[name]))]));
  const cell = (row, name) => {
    if (name === "feature") return node("th", { scope: "row" }, isolated(row.feature));
    const text = show[name] ? show[name](row[name]) : node("bdi", {}, row[name] ?? "");
    return node("td", { className: `number ${name}` }, text);
  };
  const title = (name) => {
    const sorted = state.sort !== name ? "none" : state.ascending ? "ascending" : "descending";
    const button = node("button", { type: "button" }, COLUMNS[name]);
    button.dataset.sort = name;
    return node("th", { scope: "col", className: name === "feature" ? "" : "number", "aria-sort": sorted }, button);
  };
  $("table").tHead.rows[0].replaceChildren(...shown.map(title));
  $("table").tBodies[0].replaceChildren(...rows.map((row) => node("tr", {}, ...shown.map((name) => cell(row, name)))));
  $("table").caption.textContent = `${rowName(state.row)}, all features`;
}

function sortBy(name) {
  state.ascending = state.sort === name ? !state.ascending : !FALLING.includes(name);
  state.sort = name;
  showTable();
  $("table").querySelector(`[data-sort=${name}]`).focus();
}

// Where features are groups, the columns are listed in a table of their own.
function showValues() {
  $("all-values").hidden = !head.columns.length || !head.column_of.includes(-1);
  const rows = head.columns.map((name, c) => [isolated(name), isolated(head.cells[state.row][c])]);
  $("values").replaceChildren(table(["column", "value"], rows));
}

function showAll() {
  const overall = [showBetter, showImportance, showSwarm, showRecovery, showWeights, showHeldOut];
  for (const show of [...overall, search, showRow]) show();
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function nameTheme() {
  $("theme").lastElementChild.textContent = isDark() ? "Light" : "Dark";
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea"), inList = $("list").contains(event.target);
  const steps = typing ? {} : { j: 1, k: -1 };
  if (inList || event.target === $("search")) Object.assign(steps, { ArrowDown: 1, ArrowUp: -1 });
  if (inList) Object.assign(steps, { Home: -Infinity, End: Infinity });
  const at = state.found.indexOf(state.row), last = Math.min(state.found.length, MOST_LISTED) - 1;
  if (event.key === "/" && !typing) $("search").focus();
  else if (Math.abs(steps[event.key]) === Infinity) move((steps[event.key] > 0 ? last : 0) - at, true);
  else if (event.key in steps) move(steps[event.key], inList);
  else return;
  event.preventDefault();
}

const SHRINK = 0.72, SMALL_PRINT = { "font.size": 8.5, "xaxis.title.font.size": 9, "yaxis.title.font.size": 9 };
const AS_EVER = { "font.size": 12, "xaxis.title.font.size": null, "yaxis.title.font.size": null };

// Charts at the width of the paper, at once: plotly's own way of resizing waits, and the printer does not.
function printing(begins) {
  document.body.classList.toggle("printing", begins);
  for (const chart of document.querySelectorAll(".js-plotly-plot")) {
    const height = Number(chart.dataset.height);
    if (!chart.offsetParent) continue;
    if (begins) Plotly.relayout(chart, { width: chart.clientWidth, height: SHRINK * height, ...SMALL_PRINT });
    else Plotly.relayout(chart, { width: null, height, autosize: true, ...AS_EVER });
  }
}

function listen() {
  const onButton = (id, act) => $(id).addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) act(button.dataset);
  });
  onButton("list", ({ row }) => pick(Number(row), true));
  onButton("table", ({ sort }) => sortBy(sort));
  onButton("previous", () => move(-1));
  onButton("next", () => move(1));
  onButton("theme", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  $("output").addEventListener("change", (event) => {
    state.output = Number(event.target.value);
    showAll();
  });
  $("search").addEventListener("input", search);
  $("list-order").addEventListener("change", search);
  document.addEventListener("keydown", press);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
}

async function start() {
  const text = new TextDecoder();
  document.head.append(node("script", {}, text.decode(await unpacked("data-plotly")))); // it runs at once
  head = JSON.parse(text.decode(await unpacked("data-head")));
  numbers = new Float32Array(await unpacked("data-numbers"));
  document.querySelector("main").hidden = $("footer").hidden = false;
  showFacts();
  showEvaluation();
  showAll();
  listen();
  nameTheme();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  $("summary").textContent = typeof DecompressionStream === "undefined"
    ? "This browser is too old to unpack the page (it lacks DecompressionStream). Please open it in a current one."
    : `The page could not be drawn: ${error.message}`;
  throw error;
});
