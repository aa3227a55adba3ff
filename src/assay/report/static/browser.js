"use strict";
/* The example browser of a report: choose a group, filter, search, switch the scale; the address keeps the view.
   Its data lies in the page as JSON; everything in it is shown as text. */
(() => {
  const EACH = 10;
  const USUAL = { group: "", class: "", right: "", length: "", word: "", scale: "row", rows: "", page: "1", open: "" };
  const source = document.getElementById("browser-data");
  const root = document.getElementById("browser");

  const { made } = window.assayGrid;

  /* Cards: a link to one opens it, and a button opens all. */
  function cards() {
    const all = [...document.querySelectorAll("details.card")];
    if (all.length > 1) {
      const above = all[0].parentElement.querySelector("p");
      above.append(" ");
      const button = made("button", above, "", "Open all cards");
      button.id = "open-cards";
      button.type = "button";
      button.addEventListener("click", () => {
        const open = all.some((card) => !card.open);
        for (const card of all) card.open = open;
        button.textContent = open ? "Close all cards" : "Open all cards";
      });
    }
    const reached = () => {
      const card = all.find((each) => `#${each.id}` === location.hash);
      if (card) card.open = true;
    };
    addEventListener("hashchange", reached);
    reached();
  }

  cards();
  if (!source || !root) return;

  const held = JSON.parse(source.textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const controls = { class: part("class"), right: part("right"), length: part("length"), word: part("word") };
  const [list, told, rule, pager] = ["list", "told", "rule", "pager"].map(part);
  USUAL.group = held.groups.length > 1 ? held.groups[0].key : "all";
  let state = { ...USUAL };
  let drawn = [];

  /* The rows of the heat table for one example; scores are steps up to the strongest of their row. */
  function rows(example) {
    const whole = held.first === null || state.rows === "all";
    let explainers = 0;
    const found = [];
    held.rows.forEach((row, place) => {
      const steps = example.scores[place];
      if (!steps) return;
      if (row.column.startsWith("score:") && ++explainers > held.first && !whole) return;
      const step = steps[0] / held.steps;
      const scores = steps.slice(1).map((each) => (each === null ? null : each * step));
      const kind = row.flags ? "flags" : scores.some((score) => score < 0) ? "signed" : "weights";
      const none = kind === "flags" && row.none && steps[0] === 0;
      const remark = row.column === "adversary" ? example.remark : none ? row.none : example.trust?.[row.name] ?? row.remark;
      found.push({ name: row.name, scores, kind, remark: remark || "", step: row.flags ? 0 : step });
    });
    return found;
  }

  function lengthOf(example) {
    return example.length <= held.lengths[0] ? "short" : example.length <= held.lengths[1] ? "medium" : "long";
  }

  const searched = held.examples.map((example) => `${example.words.join(" ")} ${example.query || ""}`.toLowerCase());

  function fits(example, place) {
    const right = example.label === example.predicted;
    return (
      (state.group === "all" || held.groups[example.group].key === state.group) &&
      (state.class === "" || String(example.predicted) === state.class) &&
      (state.right === "" || (state.right === "yes") === right) &&
      (state.length === "" || lengthOf(example) === state.length) &&
      searched[place].includes(state.word.trim().toLowerCase())
    );
  }

  function summary(box, example) {
    const head = made("summary", box);
    const opening = made("span", head, "opening", example.opening);
    opening.dir = "auto";
    const outcome = made("span", head, "outcome", "predicted ");
    made("bdi", made("b", outcome), "", held.classes[example.predicted]);
    outcome.append(` ${example.probability.toFixed(2)}, `);
    const right = example.label === example.predicted;
    made("span", outcome, "", right ? "✓" : "✗").setAttribute("aria-hidden", "true");
    outcome.append(right ? " right" : " labelled ");
    if (!right) made("bdi", outcome, "", held.classes[example.label]);
  }

  /* Draws the inside of an example, once it is opened. */
  function draw(box, example) {
    if (box.lastElementChild.className === "body") return;
    const body = made("div", box, "body");
    if (example.query) {
      const query = made("p", body, "query");
      made("span", query, "name", "question or hypothesis");
      made("span", query, "", example.query).dir = "auto";
    }
    const last = example.first + example.words.length;
    if (example.words.length < example.length) {
      const cut = `Words ${example.first + 1} to ${last} of ${example.length} are shown, around the strongest.`;
      made("p", body, "soft", cut);
    }
    const grid = made("div", body);
    drawn.push(assayGrid.show(grid, { words: example.words, rows: rows(example) }, shape()));
    const source = made("p", body, "soft", `${held.groups[example.group].title} · example ${example.number} in `);
    made("code", source, "", "examples.parquet");
  }

  function shape() {
    return { scale: state.scale, query: state.word, legend: false };
  }

  function example(number, first) {
    const shown = held.examples[number];
    const box = made("details", list, "example");
    summary(box, shown);
    box.addEventListener("toggle", () => {
      if (box.open) draw(box, shown);
    });
    box.firstElementChild.addEventListener("click", () => keep({ open: box.open ? "" : String(shown.number) }));
    if (state.open === String(shown.number) || (state.open === "" && first)) {
      box.open = true;
      draw(box, shown);
    }
  }

  /* The examples that fit, one page of them. */
  function show() {
    const found = held.examples.map((_, place) => place).filter((place) => fits(held.examples[place], place));
    const pages = Math.max(1, Math.ceil(found.length / EACH));
    const page = Math.min(Math.max(1, Number(state.page) || 1), pages);
    const from = (page - 1) * EACH;
    list.replaceChildren();
    drawn = [];
    found.slice(from, from + EACH).forEach((number, place) => example(number, place === 0));
    if (found.length === 0) made("p", list, "soft", "No example fits. Choose another group or take a filter away.");
    const all = held.examples.length;
    const few = all < held.total ? ` (chosen by rule out of ${held.total.toLocaleString("en")})` : "";
    told.textContent = `${found.length} of ${all} examples${few}`;
    const group = held.groups.find((each) => each.key === state.group);
    rule.textContent = group ? `Rule: ${group.rule}.` : held.groups.map((each) => `${each.title}: ${each.rule}.`).join(" ");
    pager.hidden = pages === 1;
    part("place").textContent = `${from + 1}–${Math.min(from + EACH, found.length)} of ${found.length}`;
    part("back").disabled = page === 1;
    part("on").disabled = page === pages;
    state.page = String(page);
  }

  /* Puts the state into the controls. */
  function dress() {
    for (const [name, control] of Object.entries(controls)) if (control.value !== state[name]) control.value = state[name];
    for (const button of root.querySelectorAll("button[data-sets]")) {
      button.setAttribute("aria-pressed", String(state[button.dataset.sets] === button.value));
    }
    const whole = part("rows");
    if (whole) whole.checked = state.rows === "all";
    assayGrid.legend(part("legend"), state.scale);
  }

  function address() {
    const kept = Object.entries(state).filter(([name, value]) => value !== USUAL[name]);
    return kept.length ? `#examples?${new URLSearchParams(kept)}` : "#examples";
  }

  function keep(changed) {
    state = { ...state, ...changed };
    try {
      history.replaceState(null, "", address());
    } catch {
      location.hash = address();
    }
  }

  function change(changed) {
    const again = Object.keys(changed).some((name) => name !== "scale");
    keep(again ? { page: "1", open: "", ...changed } : changed);
    dress();
    if (again) show();
    else for (const grid of drawn) grid.update(shape());
  }

  /* Takes the view from the address; what it does not know it leaves as usual. */
  function restore() {
    if (!location.hash.startsWith("#examples?")) return false;
    const asked = new URLSearchParams(location.hash.slice("#examples?".length));
    state = { ...USUAL };
    for (const name of Object.keys(USUAL)) if (asked.has(name)) state[name] = asked.get(name);
    if (!["row", "shared", "raw"].includes(state.scale)) state.scale = "row";
    for (const name of ["class", "right", "length"]) {
      if (![...controls[name].options].some((option) => option.value === state[name])) state[name] = "";
    }
    if (state.group !== "all" && !held.groups.some((group) => group.key === state.group)) state.group = USUAL.group;
    return true;
  }

  for (const [name, control] of Object.entries(controls)) {
    control.addEventListener(name === "word" ? "input" : "change", () => change({ [name]: control.value }));
  }
  for (const button of root.querySelectorAll("button[data-sets]")) {
    button.addEventListener("click", () => change({ [button.dataset.sets]: button.value }));
  }
  if (part("rows")) part("rows").addEventListener("change", (event) => change({ rows: event.target.checked ? "all" : "" }));
  for (const [name, step] of [["back", -1], ["on", 1]]) {
    part(name).addEventListener("click", () => {
      change({ page: String(Number(state.page) + step) });
      root.scrollIntoView({ block: "start" });
    });
  }
  addEventListener("hashchange", () => {
    if (restore()) { dress(); show(); }
  });

  document.documentElement.classList.add("scripted");
  root.hidden = false;
  const asked = restore();
  dress();
  show();
  if (asked) root.scrollIntoView({ block: "start" });
})();
