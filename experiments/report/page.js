"use strict";
// Everything that a model or a benchmark wrote reaches the page through textContent alone.

const SHOWN = 200; // rows that are made at a time

const $ = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// -- the theme

function theme() {
  const order = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("coda-theme") || now; } catch { /* storage is off: the choice lasts for this page */ }
  const show = () => {
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    $("theme").textContent = `Theme: ${now}`;
  };
  $("theme").addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % order.length];
    try { localStorage.setItem("coda-theme", now); } catch { /* as above */ }
    show();
  });
  show();
}

// -- the grid of problems

const state = { problems: [], block: 1, runs: [], kept: [], shown: 0, open: -1 };

function isWrong(cell) { return cell !== null && cell[0] < 1; }

function keeps(problem, wanted) {
  const [id, text, cells] = problem;
  const looked = wanted.run === "" ? cells : [cells[Number(wanted.run)]];
  if (wanted.run !== "" && looked[0] === null) return false;
  if (wanted.wrong && !looked.some(isWrong)) return false;
  if (wanted.lost !== "" && !looked.some((cell) => cell !== null && cell[1] === wanted.lost)) return false;
  if (wanted.disagree && new Set(cells.filter((cell) => cell !== null).map((cell) => cell[0])).size < 2) return false;
  return wanted.words.every((word) => id.toLowerCase().includes(word) || text.toLowerCase().includes(word));
}

function filter() {
  const wanted = {
    run: $("run").value,
    wrong: $("wrong").checked,
    lost: $("lost").value,
    disagree: $("disagree").checked,
    words: $("search").value.toLowerCase().split(/\s+/).filter(Boolean),
  };
  state.kept = [];
  state.problems.forEach((problem, place) => { if (keeps(problem, wanted)) state.kept.push(place); });
  state.shown = 0;
  $("rows").replaceChildren();
  more();
  $("count").textContent = `${state.kept.length} of ${state.problems.length} problems`;
}

function more() {
  const rows = state.kept.slice(state.shown, state.shown + SHOWN).map(row);
  $("rows").append(...rows);
  state.shown += rows.length;
  $("more").hidden = state.shown >= state.kept.length;
}

function row(place) {
  const [id, text, cells] = state.problems[place];
  const button = make("button", { type: "button" }, id);
  button.addEventListener("click", () => open(place));
  const line = make("tr", {}, make("th", { scope: "row" }, button, make("span", { class: "said" }, text)));
  for (const cell of cells) line.append(make("td", {}, ...mark(cell)));
  return line;
}

function mark(cell) {
  if (cell === null) return ["–"];
  const [right, lost] = cell;
  if (right === 1) return [make("span", { class: "right" }, "✓ right")];
  if (right === 0) return [make("span", { class: "wrong" }, `✗ ${lost ?? "wrong"}`)];
  return [make("span", { class: "wrong" }, `${Math.round(right * 100)} % right`)];
}

// -- one problem's story

const known = {
  attempt: ["origin", "path", "answer", "reasoning", "code", "execution", "refinements", "earlier", "finish", "error", "score", "correct"],
  execution: ["outcome", "stdout", "stderr", "feedback", "tests_passed", "tests_total"],
};

function said(value) {
  if (value === null || value === undefined || value === "") return null;
  if (Array.isArray(value)) return value.map((part) => said(part) ?? "").join("\n");
  return typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
}

function list(values) {
  const found = make("dl");
  for (const [name, value] of Object.entries(values)) {
    const text = said(value);
    if (text !== null) found.append(make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, text));
  }
  return found.childElementCount ? found : null;
}

function others(values, names) {
  return list(Object.fromEntries(Object.entries(values ?? {}).filter(([name]) => !names.includes(name))));
}

function block(title, text) {
  return text ? make("div", {}, make("h4", {}, title), make("pre", { tabindex: "0" }, text)) : null;
}

function judged(correct) {
  return make("span", { class: correct ? "right" : "wrong" }, correct ? "✓ right" : "✗ wrong");
}

function attempt(found, title) {
  const box = make("div", {}, make("h4", {}, `${title} `, judged(found.correct)));
  const path = found.path ?? {};
  box.append(list({ ...path, answer: found.answer ?? "none", finish: found.finish, error: found.error }) ?? "");
  for (const [number, earlier] of (found.earlier ?? []).entries()) {
    box.append(make("div", { class: "earlier" }, attempt({ ...earlier, path: {} }, `before correction ${number + 1}:`)));
  }
  if (found.reasoning) box.append(make("p", { class: "text" }, found.reasoning));
  box.append(block("Program", found.code) ?? "");
  const run = found.execution;
  if (run) {
    const tests = run.tests_total ? `${run.tests_passed ?? 0} of ${run.tests_total}` : null;
    box.append(list({ outcome: run.outcome, "tests passed": tests }) ?? "");
    for (const [name, key] of [["Output", "stdout"], ["Errors", "stderr"], ["Feedback", "feedback"]]) box.append(block(name, run[key]) ?? "");
    box.append(others(run, known.execution) ?? "");
  }
  box.append(others(found, known.attempt) ?? "");
  return box;
}

function result(found) {
  const box = make("section", {}, make("h3", {}, `${state.runs[found.run]}${found.sample ? `, sample ${found.sample}` : ""} `, judged(found.correct)));
  box.append(list({
    answer: found.answer ?? "none",
    lost: found.lost,
    error: found.error && `${found.error.kind}: ${found.error.message}`,
    stopped: found.stopped,
    cost: `${found.calls} calls, ${found.tokens} tokens, ${found.seconds} s`,
    "agreed early": found.early_exit ? "yes" : null,
  }));
  const plan = found.plan ?? {};
  if (plan.source === "engine" || plan.difficulty) {
    const paths = make("ol");
    for (const path of plan.paths ?? []) paths.append(make("li", {}, list(path) ?? ""));
    box.append(make("h4", {}, "Plan"), others(plan, ["paths"]) ?? "", paths);
  }
  let paths = 0;
  for (const each of found.attempts ?? []) {
    box.append(attempt(each, each.origin === "reflection" ? "Reflection" : `Attempt ${++paths}`));
  }
  if (found.verdict) box.append(make("h4", {}, "Verification"), list({ ...found.verdict, chosen: chosen(found.verdict) }) ?? "");
  const stages = Object.entries(found.stages ?? {}).map(([name, cost]) => [name, `${cost.calls ?? 0} calls, ${cost.prompt_tokens ?? 0} + ${cost.completion_tokens ?? 0} tokens`]);
  if (stages.length) box.append(make("h4", {}, "Cost by stage"), list(Object.fromEntries(stages)));
  return box;
}

function chosen(verdict) {
  return Number.isInteger(verdict.chosen) ? `number ${verdict.chosen + 1} of all attempts` : null;
}

async function open(place) {
  state.open = place;
  const number = Math.floor(place / state.block);
  const story = (await unpack(`block-${number}`))[place % state.block];
  if (state.open !== place) return;
  const problem = story.problem;
  const task = make("section", {}, make("h3", {}, "Problem"), make("p", { class: "text" }, problem.text));
  const letters = (problem.choices ?? []).map((choice, at) => [String.fromCharCode(65 + at), choice]);
  task.append(list(Object.fromEntries(letters)) ?? "", block("Tests", (problem.tests ?? []).join("\n")) ?? "");
  task.append(list({ task: problem.task, "entry point": problem.entry_point, "right answer": story.expected, benchmark: story.benchmark }));
  $("name").textContent = story.id;
  $("story").replaceChildren(task, ...story.results.map(result));
  if (!$("dialog").open) $("dialog").showModal();
  $("dialog").scrollTop = 0;
}

function step(by) {
  const at = state.kept.indexOf(state.open) + by;
  if (at >= 0 && at < state.kept.length) open(state.kept[at]);
}

async function start() {
  theme();
  const index = await unpack("index");
  state.problems = index.problems;
  state.block = index.block;
  state.runs = [...document.querySelectorAll("#heads th[data-run]")].map((head) => head.dataset.run);
  for (const id of ["run", "wrong", "lost", "disagree"]) $(id).addEventListener("change", filter);
  $("search").addEventListener("input", filter);
  $("more").addEventListener("click", more);
  $("close").addEventListener("click", () => $("dialog").close());
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  $("dialog").addEventListener("close", () => { state.open = -1; });
  $("dialog").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  filter();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
