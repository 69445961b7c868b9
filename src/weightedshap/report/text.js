// Access to the data of the page, and formats for text and numbers. Names and values of the data reach the page only by
// `node`, which sets them as text, or by `label`, which escapes them for plotly.

const $ = (id) => document.getElementById(id);
const state = { row: 0, output: 0, found: [], sort: "rank", ascending: true };
let head, numbers;

async function unpacked(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// The numbers of one row and output in the named array; null if the page has no such array.
function slice(name, row = state.row, output = state.output) {
  if (!(name in head.arrays)) return null;
  const [begin, length] = head.arrays[name];
  const place = begin + (row * head.outputs.length + output) * length;
  return numbers.subarray(place, place + length);
}

const one = (name, row) => slice(name, row)[0];

// The value of a feature in a row as text; null where there is none (a group of columns, or no data).
function value(row, i) {
  const column = head.column_of[i];
  return column === undefined || column < 0 ? null : head.cells[row][column];
}

const sum = (values) => values.reduce((total, each) => total + each, 0);
const area = (curve) => sum(curve) - curve[0];

function node(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, set] of Object.entries(properties)) {
    if (name in element && name !== "scope") element[name] = set;
    else element.setAttribute(name, set);
  }
  element.append(...children);
  return element;
}

const quiet = (...children) => node("p", { className: "quiet" }, ...children);

// Text of the data with its own writing direction, independent of the text around it.
const isolated = (text) => node("bdi", {}, text === "" ? "(no name)" : text);

// A table whose first column names its rows; cells are texts or nodes.
function table(titles, rows, caption) {
  const cell = (content, place) => place
    ? node("td", { className: "number" }, content)
    : node("th", { scope: "row" }, content);
  const header = titles.map((title, place) => node("th", { scope: "col", className: place ? "number" : "" }, title));
  const element = node("table", {}, node("thead", {}, node("tr", {}, ...header)),
    node("tbody", {}, ...rows.map((cells) => node("tr", {}, ...cells.map(cell)))));
  if (caption) element.createCaption().textContent = caption;
  return element;
}

// A wide table in a box that keys can scroll.
const scrolled = (element, what) => node("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": what }, element);

function cut(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

// Text of the data for plotly, which reads <b>, <a href> and the like in labels.
function label(text, most = 160) {
  const plain = cut(text.replace(/\s+/g, " "), most) || "(no name)";
  const escaped = plain.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return `\u2068${escaped}\u2069`;
}

// "name = value" for plotly.
function withValue(row, i, [name, rest] = [80, 80]) {
  const found = value(row, i);
  if (found === null) return label(head.features[i], name + rest);
  return `${label(head.features[i], name)} = ${label(found, rest)}`;
}

// The name of a row: its index label in the data, or its position.
function rowName(row) {
  const name = head.labels ? cut(head.labels[row], 40) : String(head.rows[row]);
  return /^-?[\d.]+$/.test(name) ? `Row ${name}` : name || "(no name)";
}

// A name in at most three lines of `width` letters, for plotly; the whole name is shown on hover.
function wrapped(name, width) {
  const lines = [""];
  for (const word of name.replace(/\s+/g, " ").trim().split(" ").flatMap((each) => pieces(each, width))) {
    const line = lines.at(-1);
    if (line && line.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  const shown = lines.slice(0, 3);
  if (lines.length > 3) shown[2] = `${cut(shown[2], width - 1)}…`;
  return shown.map((line) => label(line)).join("<br>");
}

function pieces(word, width) {
  const letters = Array.from(word);
  return letters.length <= width ? [word]
    : [letters.slice(0, width).join(""), ...pieces(letters.slice(width).join(""), width)];
}

const minus = (text) => text.replace("-", "−");

// As people write them, and as wording.py does: whole numbers in full, a power of ten only if tiny or huge.
function number(shown, digits = 4) {
  if (shown === null || !Number.isFinite(shown)) return "–";
  const size = Math.abs(shown);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) {
    return minus(shown.toExponential(digits - 2).replace(/\.?0+e/, "e").replace("e+", "e"));
  }
  const places = Math.max(0, digits - 1 - (size ? Math.floor(Math.log10(size)) : 0));
  const known = Number(shown.toPrecision(7)) + 0; // the page holds no more digits
  return minus(known.toLocaleString("en", { maximumFractionDigits: Math.min(places, 20) }));
}

const signed = (shown) => (shown > 0 ? "+" : "") + number(shown, 3);

// "< 1 %" and "> 99 %" where rounding would tell none or all.
function percent(share, digits = 0) {
  const text = (100 * share).toFixed(digits), least = 10 ** -digits;
  if (share > 0 && share < 1 && Number(text) === 0) return `<\u00a0${least.toFixed(digits)}\u00a0%`;
  if (share > 0 && share < 1 && Number(text) === 100) return `>\u00a0${(100 - least).toFixed(digits)}\u00a0%`;
  return `${minus(text)}\u00a0%`;
}

// Whole percentages of shares that add up to 1, rounded such that they add up to 100.
function percents(shares) {
  const exact = shares.map((share) => 100 * share), whole = exact.map((each) => Math.floor(each + 1e-9));
  const missing = Math.round(sum(exact) - sum(whole));
  const places = exact.map((_, place) => place).sort((a, b) => (exact[b] - whole[b]) - (exact[a] - whole[a]));
  for (const place of places.slice(0, missing)) whole[place] += 1;
  return whole.map((each) => `${each}\u00a0%`);
}

// A relative change in words: never "−13.6 % smaller".
const changed = (change) => `${percent(Math.abs(change), 1)} ${change < 0 ? "smaller" : "larger"}`;
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// A function that formats the numbers of a column with equally many decimals, so that their decimal points align.
function aligned(values) {
  const largest = Math.max(...values.filter(Number.isFinite).map(Math.abs), 0);
  if (largest < 1e-4 || largest >= 1e15) return (shown) => number(shown);
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(largest)));
  const places = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return (shown) => (Number.isFinite(shown) ? minus((shown + 0).toLocaleString("en", places)) : "–");
}
