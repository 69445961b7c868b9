// The charts of all rows, and the sections around them.

// STYLE is the style sheet of the figures, plots/style.py.
const { BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, RAISES, LOWERS, OF_GAMES, LOW_TO_HIGH } = STYLE;
const GREY = STYLE.DARK_GREY, LINES = STYLE.METHODS, BANDS = ["WeightedSHAP", "Shapley"];
const OTHERS = [[BLUE, "solid", 2], ...STYLE.OTHERS]; // several explainers, by their names
const MOST_SWARM = 400, MOST_LEVELS = 12, MOST_COLOURED = 6;

function draw(id, what, traces, layout, height) {
  const plain = { exponentformat: "none", separatethousands: true };
  const axis = { ...plain, fixedrange: true, automargin: true, zeroline: false, ticks: "", title: { standoff: 8 } };
  const full = {
    height, autosize: true, margin: { l: 8, r: 12, t: 8, b: 8 }, dragmode: false, hovermode: "closest",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
    hoverlabel: { bgcolor: "#26292d", bordercolor: "#26292d", font: { color: "#ffffff" }, namelength: -1 },
    legend: {
      orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal", itemclick: false, itemdoubleclick: false,
    },
    ...layout, xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  };
  $(id).dataset.height = height;
  $(id).setAttribute("role", "img");
  $(id).setAttribute("aria-label", what);
  const names = layout.yaxis?.names;
  delete full.yaxis.names;
  Plotly.react($(id), traces, full, { displayModeBar: false, responsive: true });
  $(id).removeAllListeners("plotly_afterplot");
  if (names) {
    $(id).on("plotly_afterplot", () => nameTicks(id, names));
    nameTicks(id, names);
  }
}

// Shows the full name of a tick on hover.
function nameTicks(id, names) {
  $(id).querySelectorAll(".ytick text").forEach((tick, place) => {
    if (tick.querySelector("title")) return;
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = names[place];
    tick.append(title);
  });
}

const narrow = () => matchMedia("(max-width: 600px)").matches;
const axisName = (name) => wrapped(name || "(no name)", narrow() ? 15 : 24);

// An axis of names, by position: two names may be equal once they are cut.
const categories = (names, shown = names.map(axisName)) => ({
  tickvals: names.map((_, place) => place), ticktext: shown, range: [names.length - 0.4, -0.6], names,
  showgrid: false, ticks: "outside", ticklen: 6, tickcolor: "rgba(0,0,0,0)",
});

// Room for bars whose names, as shown, take up to three lines.
const barHeight = (shown, extra) =>
  extra + shown.length * Math.max(26, 8 + 15 * Math.max(...shown.map((name) => name.split("<br>").length)));

// As in the figures: the two need not have the same sum, so bars are shares of each one's own, with numbers at their ends.
function showImportance() {
  const { features, chosen, shapley, wholes } = head.summaries[state.output].importance;
  const names = features.map((i) => head.features[i]), all = head.features.length;
  const shares = [chosen, shapley].map((values, way) => values.map((each) => 100 * each / (wholes[way] || 1)));
  const bars = (way, name, values, colour, offset) => ({
    type: "bar", orientation: "h", name: `${name}, 100 % = ${number(wholes[way], 3)}`, x: shares[way],
    y: names.map((_, place) => place), width: 0.36, offset, marker: { color: colour },
    text: values.map((each) => number(each, 3)), textposition: "outside", textfont: { size: 10 }, cliponaxis: false,
    customdata: names.map((each) => label(each)), hovertemplate: `%{customdata}<br>${name} %{text}, %{x:.1f} %<extra></extra>`,
  });
  $("importance-note").textContent = names.length < all ? `the first ${names.length} of ${all} features` : "";
  const listed = names.map((name, place) => `${name} ${number(chosen[place], 3)} (Shapley ${number(shapley[place], 3)})`);
  const reference = bars(1, label(shapleyName()), shapley, VERMILION, 0.02);
  reference.marker.pattern = { shape: "/", fillmode: "overlay", fgcolor: "white", fgopacity: 0.8, size: 5, solidity: 0.25 };
  const range = [0, 1.18 * Math.max(...shares.flat(), 1)], title = { text: `share of all mean |φ|<br>numbers: ${scale()}` };
  draw("importance", `Mean absolute attribution, WeightedSHAP and Shapley: ${listed.join(", ")}`,
    [bars(0, "WeightedSHAP", chosen, BLUE, -0.38), reference],
    { yaxis: categories(names), xaxis: { title, range, ticksuffix: " %" }, barmode: "overlay" },
    barHeight(names.map(axisName), 146));
}

function showSwarm() {
  const { features } = head.summaries[state.output].importance;
  const step = Math.ceil(head.rows.length / MOST_SWARM);
  const rows = head.rows.map((_, row) => row).filter((row) => row % step === 0), levels = [];
  const points = features.flatMap((i, place) => {
    const phi = rows.map((row) => slice("phi", row)[i]), heights = spread(phi), found = coloured(i, rows);
    if (found.levels) levels.push(levelNames(i, found.levels));
    return rows.map((row, at) =>
      ({ x: phi[at], y: place + heights[at], colour: found.colours[at], text: withValue(row, i), row }));
  });
  const each = (name) => points.map((point) => point[name]), grey = each("colour").includes(STYLE.UNKNOWN);
  $("swarm-note").textContent = [
    levels.length < features.length ? "low values dark blue, high values orange" : "",
    grey ? "grey: missing, constant, rare or free text, or a group" : "",
    rows.length < head.n ? `${rows.length} rows shown` : "", "click a point to see its row",
  ].filter(Boolean).join("; ");
  $("swarm-levels").replaceChildren(...levels);
  draw("swarm", `Attributions of ${plural(rows.length, "row")}, one line of points for each feature`, [{
    type: "scatter", mode: "markers", x: each("x"), y: each("y"), text: each("text"),
    customdata: each("row").map((row) => head.rows[row]), marker: { size: 5, opacity: 0.75, color: each("colour") },
    hovertemplate: "row %{customdata}<br>%{text}<br>φ* %{x:.4g}<extra></extra>",
  }], {
    yaxis: categories(features.map((i) => head.features[i])),
    xaxis: { title: { text: `φ* (${scale()})` }, zeroline: true },
  }, barHeight(features.map((i) => axisName(head.features[i])), 110));
  $("swarm").removeAllListeners("plotly_click");
  $("swarm").on("plotly_click", (event) => {
    pick(points[event.points[0].pointIndex].row);
    $("explorer").scrollIntoView();
  });
}

// Heights that separate the points of one feature: those of a narrow bin fan out around the line.
function spread(values) {
  const least = Math.min(...values), width = (Math.max(...values) - least) / 60 || 1;
  const bins = new Map();
  const places = values.map((each) => {
    const bin = Math.floor((each - least) / width), place = bins.get(bin) || 0;
    bins.set(bin, place + 1);
    return place;
  });
  const gap = Math.min(0.06, 0.8 / Math.max(...bins.values()));
  return places.map((place) => (place % 2 ? 1 : -1) * Math.ceil(place / 2) * gap);
}

// Colours of a feature's values in some rows: by rank for numbers, one for each of the most frequent words; else grey.
function coloured(i, rows) {
  const cells = rows.map((row) => value(row, i)), numbers = cells.map((cell) => Number(cell || NaN));
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b), counts = new Map();
  const middle = (each) => (sorted.indexOf(each) + sorted.lastIndexOf(each)) / 2 / (sorted.length - 1);
  const varied = sorted.length > 1 && sorted[0] !== sorted.at(-1);
  if (sorted.length) return { colours: numbers.map((each) => mixed(varied && Number.isFinite(each) ? middle(each) : null)) };
  for (const cell of cells) if (cell !== null && cell !== "missing") counts.set(cell, (counts.get(cell) || 0) + 1);
  const frequent = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_COLOURED);
  const few = counts.size && counts.size <= MOST_LEVELS ? new Map(frequent.map(([level], at) => [level, STYLE.PALETTE[at]])) : null;
  return { colours: cells.map((cell) => few?.get(cell) ?? STYLE.UNKNOWN), levels: few };
}

// The legend for the colours of a feature whose values are words.
function levelNames(i, levels) {
  const marks = [...levels].flatMap(([level, colour]) => {
    const mark = node("span", { "aria-hidden": true }, " ■ ");
    mark.style.color = colour;
    return [mark, isolated(cut(level, 30))];
  });
  return quiet(isolated(cut(head.features[i], 40)), ":", ...marks);
}

// The colours of the style sheet, from low ranks to high ones; grey where there is no rank.
function mixed(rank) {
  if (rank === null) return STYLE.UNKNOWN;
  const at = rank * (LOW_TO_HIGH.length - 1), low = Math.min(Math.floor(at), LOW_TO_HIGH.length - 2);
  const [from, to] = [LOW_TO_HIGH[low], LOW_TO_HIGH[low + 1]].map((hex) => hex.match(/\w\w/g).map((c) => parseInt(c, 16)));
  return `rgb(${from.map((each, c) => Math.round(each + (at - low) * (to[c] - each))).join(",")})`;
}

// Charts side by side have the same height.
const tall = () => Math.max(60 + 26 * head.summaries[state.output].weights.names.length, 340);

// A bar for each weight, with a part for each game where several compete.
function showWeights() {
  const { names, games, shares, uniform } = head.summaries[state.output].weights;
  const share = names.map((_, place) => sum(shares.map((each) => each[place])));
  const shown = names.map((name, place) => (place === uniform && name !== "Shapley" ? `${name} = Shapley` : name));
  const percentages = percents(share), ofGames = percents(shares.map(sum));
  const listed = shown.map((name, place) => `${name} ${percentages[place]}`).join(", ");
  const y = names.map((_, place) => place), plain = y.map((place) => (place === uniform ? VERMILION : BLUE));
  const parts = shares.map((part, g) => ({
    type: "bar", orientation: "h", x: part.map((each) => 100 * each), y, hoverinfo: "skip", showlegend: games.length > 0,
    name: games.length ? `${label(games[g])} ${ofGames[g]}` : "",
    marker: { color: games.length ? OF_GAMES[g % OF_GAMES.length] : plain },
  }));
  const annotations = y.filter((place) => share[place] > 0).map((place) => ({
    x: 100 * share[place], y: place, text: percentages[place], xanchor: "left", showarrow: false,
  }));
  $("weights-note").textContent = `features alone on top, all others known below; ${head.scored}`;
  draw("weights", `Share of the rows that chose each weight: ${listed}`, parts, {
    yaxis: categories(shown), xaxis: { range: [0, 115 * Math.max(...share, 0.01)], ticksuffix: " %" },
    barmode: "stack", annotations,
  }, tall());
}

function lines(curves) {
  return curves.flatMap(([name, mean, margin], place) => {
    const [colour, dash, width] = LINES[name] || OTHERS[place % OTHERS.length], k = mean.map((_, known) => known);
    const line = {
      type: "scatter", mode: "lines", name: label(name, 40), x: k, y: mean,
      line: { color: colour, dash, width },
      hovertemplate: `${label(name)}<br>%{x} known: %{y:.4g}<extra></extra>`,
    };
    if (!BANDS.includes(name) || !margin || margin.includes(null)) return [line];
    const edge = (sign) => mean.map((each, place) => Math.max(0, each + sign * margin[place]));
    const band = {
      type: "scatter", mode: "lines", x: [...k, ...k.toReversed()], y: [...edge(1), ...edge(-1).reverse()],
      fill: "toself", fillcolor: colour, opacity: 0.13, line: { width: 0 }, hoverinfo: "skip", showlegend: false,
    };
    return [band, line];
  });
}

// A grey line marks what the judge misses when all features are known.
function drawRecovery(id, what, judge, title, height) {
  const { curves } = judge;
  const known = { text: "features known, most influential first" }, level = curves[0][1].at(-1);
  const mark = { type: "line", xref: "paper", x0: 0, x1: 1, y0: level, y1: level, line: { width: 1 }, layer: "below" };
  draw(id, what, lines(curves), {
    xaxis: { title: known, range: [0, curves[0][1].length - 1], tickformat: "d", showgrid: false },
    yaxis: { title: { text: title }, rangemode: "tozero" }, shapes: misses(judge) ? [mark] : [],
  }, height);
}

// The first judge that did not choose the weights.
const fair = () => head.evaluation && head.evaluation.judges[head.evaluation.fair];
const scale = () => label(head.scales[0]);
const shapleyName = () => (head.first ? `Shapley of ${head.first}` : "Shapley");
const misses = ({ misfit }) => misfit > 0.005;
const missed = ({ misfit }) => ` Of the area ${percent(misfit)} is what this judge misses by itself.`;

function showRecovery() {
  const what = "Mean recovery error against the number of known features, on ";
  const title = "mean |f(x) − v(top k)|", { own } = head.summaries[state.output];
  $("recovery-note").textContent = `${head.judge}${misses(own) ? "; grey line: what it misses by itself, when all features are known" : ""}`;
  const scaled = `${title} (${label(head.scales[1])})`;
  drawRecovery("recovery", what + "the judge that chose the weights", own, scaled, tall());
  $("fair-figure").hidden = !fair();
  $("weights-figure").classList.toggle("wide", Boolean(fair()));
  if (!fair()) return;
  $("fair-note").textContent = head.evaluation.fair;
  drawRecovery("fair", what + fair().told, fair(), title, tall());
}

function showHeldOut() {
  $("held-out-figure").hidden = !head.held_out;
  if (!head.held_out) return;
  const { errors, variance } = head.held_out;
  const level = { type: "scatter", mode: "lines", name: "variance of f", hoverinfo: "skip" };
  const traces = [{
    type: "scatter", mode: "lines+markers", name: "held-out error", x: errors.map((_, size) => size), y: errors,
    line: { color: BLUE }, marker: { size: 5 }, connectgaps: true, hovertemplate: "%{x} known: %{y:.4g}<extra></extra>",
  }, { ...level, x: [0, errors.length - 1], y: [variance, variance], line: { color: GREY, dash: "dot" } }];
  draw("held-out", "Held-out squared error of the judge by number of known features", traces, {
    xaxis: { title: { text: "features known" }, tickformat: "d", showgrid: false },
    yaxis: { title: { text: "squared error" }, rangemode: "tozero" },
  }, 320);
}

function showFacts() {
  const outputs = head.outputs.length > 1 ? `, ${head.outputs.length} outputs` : "";
  const [reason] = head.stopped[0], judge = new Map(head.facts).get("judged by");
  $("summary").textContent = `WeightedSHAP of ${plural(head.n, "row")} and ${plural(head.features.length, "feature")}` +
    `${outputs}. Explained: ${head.game}. Judged by: ${judge}. Contributions: ${reason}.`;
  const [scaled] = head.scales;
  $("search-scale").textContent = scaled === "prediction" ? scaled : `prediction as ${scaled}`;
  for (const [name, text] of head.facts) $("facts").append(node("dt", {}, name), node("dd", {}, text));
  const reasons = head.stopped.slice(0, 10).map(([each, count]) => `${each} (${plural(count, "row")})`);
  if (head.stopped.length > 10) reasons.push(`and ${plural(head.stopped.length - 10, "other reason")}`);
  $("stopped").append(...reasons.map((each) => node("li", {}, each)));
  for (const note of head.notes) document.querySelector("main").before(node("p", { className: "note" }, note));
  $("explored").textContent = head.rows.length === head.n ? `All ${plural(head.n, "row")} can be explored here.`
    : `${head.rows.length.toLocaleString("en")} of ${plural(head.n, "row")} can be explored here, evenly spread from ` +
      `row ${head.rows[0]} to row ${head.rows.at(-1)}, so that the file stays small. Everything above counts all rows.`;
  $("made").textContent = `Made with weightedshap ${head.version} and plotly.js ${Plotly.version} (MIT licence). ` +
    "Nothing in this page is loaded from the network.";
  $("output-choice").hidden = head.outputs.length < 2;
  $("output").append(...head.outputs.map((name, place) => node("option", { value: place }, cut(name, 60))));
}

// The headline of one judge: how much smaller the area is than Shapley's.
function headline({ change, leading }) {
  if (!change || change.mean === null) return [node("p", { className: "big" }, "–")];
  const { mean, margin, better, equal } = change;
  const of = leading[0] === "WeightedSHAP" ? [] : [": ", isolated(leading[0])];
  const how = mean < 0 ? "smaller area than Shapley" : mean > 0 ? "larger area than Shapley" : "the same area as Shapley";
  const interval = margin === null ? "One row gives no interval"
    : `95 % interval: ${changed(mean - margin)} to ${changed(mean + margin)}`;
  const [more, same, less] = percents([better, equal, Math.max(0, 1 - better - equal)]);
  return [
    node("p", { className: "big" }, mean ? percent(Math.abs(mean), 1) : "", " ", node("small", {}, how, ...of)),
    quiet(`${interval}. Better in ${more} of the rows, equal in ${same}, worse in ${less}.`),
  ];
}

function areaTable({ areas, leading }) {
  const [, reference] = areas.find(([name]) => name === "Shapley") || [];
  const show = aligned(areas.map(([, mean]) => mean));
  const share = (mean) => (reference > 0 ? percent(mean / reference) : "–");
  const areasTable = table(["ranking by", "area", "95 % interval", "of Shapley"], areas.map(([name, mean, margin]) =>
    [isolated(name), show(mean), margin === null ? "–" : `± ${show(margin)}`, share(mean)]));
  const chosen = areas.findIndex(([name]) => name === leading[0]);
  if (chosen >= 0) areasTable.tBodies[0].rows[chosen].className = "chosen";
  return areasTable;
}

function showBetter() {
  const { own } = head.summaries[state.output];
  const warning = head.utility === "aup"
    ? "Flattering: the weights were chosen on this very judge, so WeightedSHAP can never look worse than Shapley here."
    : `The weights were chosen for the utility ${head.utility} rather than for recovery.`;
  const of = head.first ? ` Shapley, first and last are those of ${head.first}.` : "";
  const chose = [...headline(own), areaTable(own), quiet(`${head.judge}. ${warning}${missed(own)}${of}`)];
  $("better").replaceChildren(
    node("div", {}, node("h3", {}, "On the judge that chose the weights"), ...chose),
    node("div", {}, node("h3", {}, "On a judge that chose nothing"), ...(fair() ? judged(fair()) : notJudged())),
  );
}

function judged(judge) {
  const averaged = head.outputs.length > 1 ? " The outputs are averaged." : "";
  return [...headline(judge), areaTable(judge), quiet(`The fair number: ${plural(judge.rows, "row")} explained on ` +
    `halves of the background, judged by ${judge.told}.${averaged}${missed(judge)}`)];
}

function notJudged() {
  const code = (text) => node("code", {}, text);
  return [
    node("p", {}, "Not measured yet. The other number is flattering: the judge that chose the weights scores them too."),
    node("p", {}, "For a fair one, ", code("evaluation = ws.evaluate(explainer, X)"), " explains on one half of the " +
      "background and judges on the other; then ", code("explanation.report(path, evaluation)"), " shows it here."),
  ];
}

function showEvaluation() {
  $("metrics").hidden = !head.evaluation;
  if (!head.evaluation) return;
  const { methods, metrics, larger, judges } = head.evaluation;
  const titles = ["method", ...metrics.map((name, c) => `${name.replaceAll("_", " ")} ${larger[c] ? "↑" : "↓"}`)];
  for (const judge of Object.values(judges)) {
    const { mean, margin, told } = judge;
    const show = metrics.map((_, c) => aligned(mean.map((line) => line[c])));
    const rows = methods.map((method, m) =>
      [isolated(method), ...metrics.map((_, c) => `${show[c](mean[m][c])} ± ${show[c](margin[m][c])}`)]);
    const arrows = "mean ± half of the 95 % interval; ↓ small is good, ↑ large is good.";
    const caption = `Judged by ${told}: ${arrows}${missed(judge)}`;
    $("metrics").append(scrolled(table(titles, rows, caption), `Judged by ${told}`));
  }
}
