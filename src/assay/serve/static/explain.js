/* The page that explains one text: a form, its answer, and the address that holds both. */
import { read, write } from "./address.js";
import { ask } from "./asking.js";
import { Attending } from "./attending.js";
import { at, classes, copyable, made, percent } from "./showing.js";

const SCALES = ["row", "shared", "raw"];
let models = [];
let view = read();
let running = null; // what can be called off
let found = null; // the last explanation
let grid = null;

const attending = new Attending({ changed: (act) => {
  view.act = act;
  settle();
} });
const about = () => models.find((model) => model.name === at("model").value); // the one that is chosen in the form

let settling;
function settle() {
  clearTimeout(settling); // a drag is one change of the address, not a hundred
  settling = setTimeout(() => write(view, false), 150);
}

/* The form */
function offer() {
  const model = about();
  const where = model.device === "cpu" ? "" : `on ${model.device}`;
  const text = [model.description, where].filter(Boolean).join(", ");
  at("about").textContent = models.length > 1 ? text : `Model ${model.name}${text ? `: ${text}` : ""}`;
  at("query-field").hidden = !model.paired;
  at("target").replaceChildren(new Option("that the model predicts", ""));
  for (const name of model.classes) at("target").append(new Option(name, name));
  at("target").value = model.classes.includes(view.target) ? view.target : "";
  at("tree").replaceChildren(new Option("none", ""));
  for (const name of model.trees) at("tree").append(new Option(name, name));
  at("tree").value = model.trees.includes(view.tree) ? view.tree : "";
  const wanted = (model.name === view.model ? view.explainers : null) ?? model.usual;
  for (const [id, usual] of [["usual", true], ["others", false]]) {
    at(id).replaceChildren(at(id).querySelector("legend"));
    for (const each of model.explainers.filter((explainer) => model.usual.includes(explainer.name) === usual)) {
      at(id).append(choice(each, wanted.includes(each.name)));
    }
  }
  if (wanted.some((name) => !model.usual.includes(name))) at("more").open = true;
  tally();
}

function choice(explainer, chosen) {
  const label = made("label", null, "choice");
  const box = made("input", label);
  box.type = "checkbox";
  box.name = "explainers";
  box.value = explainer.name;
  box.disabled = Boolean(explainer.why_not);
  box.checked = chosen && !box.disabled;
  const words = made("span", label);
  made("b", words, "", explainer.name.replaceAll("_", " "));
  made("span", words, "soft", explainer.why_not ? `Not here: ${explainer.why_not}` : explainer.meaning);
  return label;
}

const checked = () => [...document.querySelectorAll("[name=explainers]:checked")].map((box) => box.value);

function tally() {
  const names = checked().map((name) => name.replaceAll("_", " "));
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  at("chosen").textContent = names.length ? names.slice(0, 3).join(", ") + more : "none chosen";
}

function fill(first = false) {
  at("model").value = view.model;
  if (!first || view.text !== "") at("text").value = view.text; // what was typed while the page loaded stays
  at("query").value = view.query;
  document.querySelector(`[name=scale][value=${view.scale}]`).checked = true;
  offer();
}

/* The usual explainers that serve the model. */
function usual() {
  const { explainers, usual: names } = about();
  return names.filter((name) => explainers.some((each) => each.name === name && !each.why_not));
}

const same = (names, others) => names.length === others.length && names.every((name) => others.includes(name));

function submit(event) {
  event.preventDefault();
  if (models.length === 0) {
    window.assayEarly = true;
    return;
  }
  const names = checked();
  if (names.length === 0) {
    at("choice").open = true;
    at("wrong").textContent = "Choose at least one explainer.";
    return;
  }
  const query = about().paired ? at("query").value : "";
  const next = { ...view, model: about().name, text: at("text").value, query, target: at("target").value };
  next.tree = at("tree").value;
  const other = ["model", "text", "query"].some((name) => next[name] !== view[name]);
  next.explainers = same(names, usual()) ? null : names;
  if (other) next.act = read({ search: "", hash: "" }).act;
  view = next;
  clearTimeout(settling);
  write(view, true);
  run();
}

/* The answer */
async function run() {
  running?.abort();
  running = null;
  attending.leave();
  at("wrong").textContent = "";
  at("working").replaceChildren();
  clearInterval(working.clock);
  at("result").hidden ||= view.text.trim() === "";
  if (view.text.trim() === "") return;
  const model = about();
  const own = (running = new AbortController());
  const asked = { model: model.name, text: view.text, query: view.query || null };
  const names = view.explainers ?? usual();
  const stop = working(names.length);
  at("result").classList.add("old");
  try {
    const body = { ...asked, explainers: names, target: view.target || null, tree: view.tree || null };
    found = await ask("/api/explain", body, { signal: own.signal, busy: busily });
    at("result").hidden = false;
    at("result").classList.remove("old");
    show();
    attending.start(model, asked, view.act);
  } catch (fault) {
    if (own !== running) return;
    at("result").hidden = true;
    at("wrong").textContent = fault.message;
  } finally {
    if (own === running) stop();
  }
}

function busily(seconds) {
  at("working").firstChild.textContent = `Many ask the model at once; trying again in ${seconds} seconds…`;
}

/* Says that something happens, and for how long already. */
function working(count) {
  clearInterval(working.clock);
  const began = Date.now();
  const line = at("working");
  line.replaceChildren();
  const explain = count === 1 ? "1 explainer explains" : `${count} explainers explain`;
  made("span", line, "", `Working… the model reads the text, ${explain} it.`);
  const clock = made("span", line, "soft");
  clock.setAttribute("aria-hidden", "true");
  working.clock = setInterval(() => (clock.textContent = ` ${Math.round((Date.now() - began) / 1000)} s`), 1000);
  return () => {
    clearInterval(working.clock);
    line.replaceChildren();
  };
}

function show() {
  const line = at("decided");
  line.replaceChildren("The model says ");
  made("b", made("bdi", line), "", found.predicted);
  line.append(` with ${percent(found.probabilities[found.predicted])}.`);
  classes(at("probabilities"), found.probabilities, null);
  const names = Object.keys(found.scores);
  at("explained").replaceChildren("Scores say how much each word counts for the class ");
  made("bdi", at("explained"), "name", found.target);
  const predicted = found.target === found.predicted;
  at("explained").append(predicted ? ", the one that the model predicts." : ", which the model does not predict.");
  for (const [place, id] of ["first", "second"].entries()) {
    at(id).replaceChildren(new Option(place ? "…" : "all", ""));
    for (const name of names) at(id).append(new Option(name.replaceAll("_", " "), name));
    at(id).value = names.includes(view.compare[place]) ? view.compare[place] : "";
  }
  draw();
  notes();
  phrases();
  copyable(at("explain-command"), found.command, "The same on the command line");
}

/* What an explainer says of its own scores. */
function numbers(name) {
  const said = Object.entries(found.notes[name] ?? {});
  return said.map(([key, value]) => `${key.replaceAll("_", " ")} ${Number(value.toPrecision(3))}`).join(", ");
}

function draw() {
  const pair = [at("first").value, at("second").value].filter((name) => name !== "");
  view.compare = pair;
  at("second").disabled = at("first").value === "";
  const names = pair.length ? [...new Set(pair)] : Object.keys(found.scores);
  const rows = names.map((name) => {
    const scores = found.scores[name];
    const kind = scores.some((score) => score < 0) ? "signed" : "weights";
    const trust = found.notes[name]?.trust;
    return { name: name.replaceAll("_", " "), scores, kind, remark: trust === undefined ? "" : `trust ${trust.toFixed(2)}` };
  });
  at("grid").replaceChildren();
  at("words").querySelector(".tools").hidden = at("grid").hidden = names.length === 0;
  const example = { words: found.words, rows };
  if (names.length) grid = window.assayGrid.show(made("div", at("grid")), example, { scale: view.scale });
  agreement(names);
}

/* What two explainers have in common, in words. */
function agreement(names) {
  at("agreed").replaceChildren();
  if (at("second").value === "" || names.length !== 2) return;
  const most = Math.min(5, Math.floor(found.words.length / 2));
  const strongest = (name) => {
    const sizes = found.scores[name].map(Math.abs);
    return [...sizes.keys()].sort((one, other) => sizes[other] - sizes[one]).slice(0, most);
  };
  const [one, other] = names.map(strongest);
  const both = one.filter((place) => other.includes(place));
  if (most === 0) return;
  at("agreed").append(`Of their ${most} strongest words they share ${both.length === 0 ? "none" : both.length}`);
  both.forEach((place, number) => {
    at("agreed").append(number ? ", " : ": ");
    made("bdi", at("agreed"), "name", found.words[place]);
  });
  at("agreed").append(".");
}

function notes() {
  const list = at("notes");
  list.replaceChildren();
  for (const name of Object.keys(found.scores)) if (numbers(name)) entry(list, name, numbers(name));
  for (const [name, reason] of Object.entries(found.left_out)) entry(list, name, `left out: ${reason}.`);
  list.hidden = list.childElementCount === 0;
}

/* Hierarchies as the server drew them: it has escaped all that is not its own. */
function phrases() {
  const trees = Object.values(found.drawn ?? {});
  at("phrases").hidden = trees.length === 0;
  at("trees").replaceChildren();
  for (const tree of trees) at("trees").append(new DOMParser().parseFromString(tree, "text/html").body.firstChild);
}

function entry(list, name, text) {
  made("dt", list, "", name.replaceAll("_", " "));
  made("dd", list, "", text);
}

/* What a person does */
at("ask").addEventListener("submit", submit);
at("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
at("choice").addEventListener("change", tally);
at("model").addEventListener("change", offer);
at("scale").addEventListener("change", (event) => {
  view.scale = SCALES.includes(event.target.value) ? event.target.value : "row";
  grid?.update({ scale: view.scale });
  settle();
});
for (const id of ["first", "second"]) at(id).addEventListener("change", () => {
  if (at("first").value === "") at("second").value = "";
  draw();
  settle();
});
addEventListener("popstate", () => {
  view = read();
  clearTimeout(settling);
  fill();
  run();
});

try {
  models = (await ask("/api/models")).models;
  for (const model of models) at("model").append(new Option(model.name, model.name));
  at("model-field").hidden = models.length < 2;
  if (view.model !== "" && !models.some((model) => model.name === view.model)) {
    at("wrong").textContent = "The model of this address is not open here; another one is used.";
    view.model = models[0].name;
  } else if (view.model === "") view.model = models[0].name;
  at("send").disabled = false;
  fill(true);
  if (window.assayEarly) at("ask").requestSubmit();
  else if (at("wrong").textContent === "") await run();
} catch (fault) {
  at("wrong").textContent = fault.message;
}
