/* Attention under the hands of a person: what they do to it, and how the answer follows. */
import { ask, latest } from "./asking.js";
import { at, classes, copyable, made, percent, small } from "./showing.js";
import { Strip, shared, take } from "./weights.js";

const ACTS = [
  ["observed", "As observed", "Back to the weights that the model itself gives."],
  ["uniform", "Uniform", "The same weight on everything."],
  ["permute", "Permute", "The same weights in another order; press again for another one."],
  ["erase", "Erase selected", "No weight on the selected words; the others share the rest."],
  ["furthest", "Furthest, same answer", "The attention that differs most while the answer stays the same."],
  ["flip", "Smallest set that flips", "The fewest words without which the decision is another."],
  ["likeliest", "Make likely:", "The attention under which this class is as likely as attention can make it."],
];
const SEARCHED = ["furthest", "flip", "likeliest"];
const KINDS = {
  exact: "Proved: there is none better.",
  bracket: "The best lies between this one and a proved bound.",
  "lower bound": "Found by a search: there may be a better one.",
};
const MOST = Math.log(2); // of the divergence

const NEW = { kind: "observed", weights: {}, items: [], target: null, seed: 0, layer: null, head: null, place: null };
const rounded = (weight) => Math.floor(1e6 * weight) / 1e6; // never more than 1 together

/* How much a share of the largest possible distance is, in words. */
function sized(share) {
  if (share < 1e-9) return "not at all";
  const reached = [0.01, 0.1, 0.35, 0.85].filter((least) => share >= least);
  return ["hardly", "a little", "clearly", "strongly", "almost completely"][reached.length];
}

export class Attending {
  /* changed(act) hears what the address should hold. */
  constructor({ changed }) {
    this.changed = changed;
    this.strip = new Strip(at("weights"), {
      pulled: (item, weight) => this.pulled(item, weight),
      picked: () => this.offer(),
      scaled: (top) => (at("scaled-to").textContent = `A full bar is a weight of ${top}.`),
    });
    this.turn = 0;
    this.ask = latest(
      (question) => ask("/api/attend", question.body, { busy: (seconds) => this.busily(seconds) }),
      (answer, question, newest) => question.turn === this.turn && this.received(answer, question, newest),
      (fault, question) => question.turn === this.turn && this.failed(fault),
    );
    for (const name of ["layer", "head", "place"]) at(name).addEventListener("change", () => this.placed());
  }

  /* What is shown belongs to a text before: it cannot be moved, and answers to it come too late. */
  leave() {
    this.turn += 1;
    at("hands").inert = true;
    at("hands").classList.add("old");
  }

  /* Another text. */
  start(about, asked, act) {
    this.about = about;
    this.asked = asked;
    this.act = { ...NEW, ...act };
    this.answer = null;
    this.hand = new Map();
    at("hands").hidden = about.attention === "none";
    if (about.attention === "none") return;
    at("hands-wrong").textContent = "";
    this.strip.picks = new Set(this.act.kind === "erase" ? this.act.items : []);
    this.describe();
    this.buttons();
    this.send();
  }

  describe() {
    const kind = this.about.items === "sentences" ? "sentence" : "word";
    const stack = this.about.attention === "stack";
    at("hands-about").textContent =
      `Each bar is the weight that the model’s attention gives to a ${kind}. Pull one up or down: ` +
      "the others share the rest, and the answer follows." +
      (stack ? " A transformer attends in many places; choose where (layers and heads are counted from 0)." : "");
    const hint = at("weights-hint");
    hint.replaceChildren();
    made("span", hint, "key ghost-key", "dotted line: as observed");
    made("span", hint, "key held-key", "striped: set by hand");
    made("span", hint).id = "scaled-to";
    const hands = `Pull past the top for more. Click a ${kind} (or press Space on its bar) to select it.`;
    const keys = `Keys: ↑ ↓ by 0.01, Page ↑ ↓ by 0.1, Home, End, Shift + ← → for the next ${kind}.`;
    made("span", hint, "", `${hands} ${keys}`);
    at("stack").hidden = !stack;
    if (!stack) return;
    const fill = (name, count, label) => {
      at(name).replaceChildren(new Option("all", ""));
      for (let number = 0; number < count; number++) at(name).append(new Option(label(number), number));
    };
    fill("layer", this.about.layers, String); // counted from 0, as on the command line
    fill("head", this.about.heads, String);
    fill("place", 0);
    for (const name of ["layer", "head"]) at(name).value = this.act[name] ?? "";
  }

  /* The words are known with the first answer. */
  places() {
    const words = this.answer.words;
    if (at("place").length === words.length + 1) return;
    at("place").replaceChildren(new Option("all", ""));
    const met = new Map();
    words.forEach((word, number) => {
      const again = (met.get(word) ?? 0) + 1;
      met.set(word, again);
      at("place").append(new Option(again > 1 ? `${word} (${again})` : word, number));
    });
    at("place").value = this.act.place ?? "";
  }

  placed() {
    const number = (name) => (at(name).value === "" ? null : Number(at(name).value));
    const where = { layer: number("layer"), head: number("head"), place: number("place") };
    this.hand = new Map();
    this.act = { ...this.act, ...where };
    if (this.act.kind === "set") this.act = { ...NEW, ...where };
    this.send();
  }

  buttons() {
    const group = at("acts");
    group.replaceChildren();
    at("reasons").replaceChildren();
    for (const [kind, name, meaning] of ACTS) {
      const button = made("button", kind === "likeliest" ? made("span", group, "joined") : group, "act", name);
      button.type = "button";
      button.dataset.act = kind;
      button.title = meaning;
      button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && this.press(kind));
    }
    const choice = made("select", group.lastElementChild);
    choice.id = "likely";
    choice.setAttribute("aria-label", "Class to make likely");
    for (const name of this.about.classes) choice.append(new Option(name, name));
    choice.value = this.act.target ?? this.about.classes[0];
    choice.addEventListener("change", () => this.act.kind === "likeliest" && this.press("likeliest"));
    this.offer();
  }

  /* Which acts there are to choose now, and why not the others. */
  offer() {
    at("reasons").replaceChildren();
    const marked = this.strip.picks.size;
    for (const button of at("acts").querySelectorAll("button")) {
      const kind = button.dataset.act;
      const item = this.about.items === "sentences" ? "sentences" : "words";
      const none = kind === "erase" && marked === 0 ? `select ${item} first: click on them below.` : null;
      const why = this.about.acts[kind] ?? none;
      button.setAttribute("aria-disabled", String(Boolean(why)));
      button.setAttribute("aria-pressed", String(this.act.kind === kind));
      button.removeAttribute("aria-describedby");
      if (kind === "erase") button.textContent = marked ? `Erase selected (${marked})` : "Erase selected";
      if (!why) continue;
      const name = button.textContent.replace(":", "");
      const reason = made("span", at("reasons"), this.about.acts[kind] ? "" : "unseen", `${name}: ${why} `);
      reason.id = `why-${kind}`;
      button.setAttribute("aria-describedby", reason.id);
      button.title = why;
    }
  }

  press(kind) {
    const seed = kind === "permute" ? (this.act.kind === "permute" ? this.act.seed : this.act.seed - 1) + 1 : 0;
    const target = kind === "likeliest" ? at("likely").value : null;
    const items = kind === "erase" ? [...this.strip.picks].sort((one, other) => one - other) : [];
    const everywhere = kind === "furthest"; // it is searched for in all layers at once
    if (everywhere) for (const name of ["layer", "head", "place"]) at(name).value = "";
    const { layer, head, place } = everywhere ? NEW : this.act;
    this.hand = new Map();
    this.act = { ...NEW, kind, seed: Math.max(0, seed), target, items, layer, head, place };
    if (kind === "observed") this.strip.picks.clear();
    at("moved").classList.add("waiting");
    at("turn").textContent = at("said").textContent = "Working…";
    this.send();
  }

  /* A weight is in the hand: the others follow here at once, the answer when the model has it. */
  pulled(item, weight) {
    if (this.answer === null) return;
    if (this.act.kind !== "set") {
      this.hand = new Map();
      const own = this.act.kind === "observed";
      this.base = own ? this.answer.observed : this.strip.weights;
      this.whole = !own; // the app knows only the observed weights: others are sent in full
    }
    take(this.hand, item, weight, this.base.length);
    const weights = shared(this.base, this.hand, this.answer.elsewhere);
    const sent = this.whole ? weights.map((each, place) => [place, each]) : [...this.hand];
    const { layer, head, place } = this.act;
    const given = Object.fromEntries(sent.map(([each, share]) => [each, rounded(share)]));
    this.act = { ...NEW, kind: "set", layer, head, place, weights: given };
    this.strip.set(weights, this.answer.observed, this.hand, []);
    this.send();
  }

  send() {
    this.offer();
    this.ask({ body: { ...this.asked, act: this.act }, turn: this.turn });
  }

  received(answer, question, newest) {
    const first = this.answer === null;
    this.answer = answer;
    at("hands-wrong").textContent = "";
    if (first) {
      at("hands").inert = false;
      at("hands").classList.remove("old");
      const still = this.about.acts.set ?? null;
      this.strip.show(answer.items, answer.observed, { sentences: this.about.items === "sentences", still });
      if (this.about.attention === "stack") this.places();
      if (this.act.target === null) at("likely").value = this.rival();
      this.restored(question.body.act);
    }
    if (newest) {
      this.strip.set(answer.weights, answer.observed, this.hand, answer.chosen);
      copyable(at("attend-command"), answer.command, "The same on the command line");
      this.changed(this.act);
    }
    this.moved(answer, question.body.act);
  }

  /* The class that comes next: the one that a person may want to see likely. */
  rival() {
    const { before, predicted_before: predicted } = this.answer;
    const others = Object.keys(before).filter((name) => name !== predicted);
    return others.reduce((best, name) => (before[name] > before[best] ? name : best), others[0] ?? predicted);
  }

  /* Weights from the address are in the hand again. */
  restored(act) {
    if (act.kind !== "set") return;
    const given = Object.entries(act.weights).map(([item, weight]) => [Number(item), weight]);
    this.whole = given.length >= this.answer.items.length;
    this.base = this.whole ? this.answer.weights : this.answer.observed;
    this.hand = new Map(this.whole ? [] : given);
  }

  busily(seconds) {
    at("hands-wrong").textContent = `Many ask the model at once; trying again in ${seconds} seconds.`;
  }

  failed(fault) {
    at("hands").inert = false;
    at("moved").classList.remove("waiting");
    at("hands-wrong").textContent = fault.message;
    at("turn").textContent = "That did not work.";
    if (this.answer) this.strip.set(this.answer.weights, this.answer.observed, this.hand, this.answer.chosen);
  }

  moved(answer, act) {
    const box = at("moved");
    box.classList.remove("waiting");
    box.replaceChildren();
    const same = answer.predicted_before === answer.predicted_after;
    const line = at("turn");
    const own = act.kind === "observed";
    line.className = `turn ${own ? "" : same ? "same" : "other"}`;
    line.replaceChildren(own ? "The model says " : same ? "Still " : "Now ");
    made("b", made("bdi", line), "", answer.predicted_after);
    line.append(` (${percent(answer.after[answer.predicted_after])})`);
    if (!same) {
      line.append(", no longer ");
      made("bdi", line, "", answer.predicted_before);
    }
    classes(made("div", box), answer.before, own ? null : answer.after, 6);
    const share = Math.min(1, answer.jsd / MOST);
    const upper = (answer.jsd_upper ?? 0) - answer.jsd < 5e-4 ? "" : ` (at most ${small(answer.jsd_upper)})`;
    const distances = made("dl", box, "distances");
    this.distance(distances, "The answer moved", sized(answer.tvd), answer.tvd, `TVD ${small(answer.tvd)} of 1`);
    this.distance(distances, "The attention moved", sized(share), share, `JSD ${small(answer.jsd)} of 0.693${upper}`);
    const note = made("p", box, "note");
    if (SEARCHED.includes(act.kind)) {
      const badge = made("span", note, `badge ${answer.kind === "exact" ? "pass" : "warn"}`, answer.kind);
      badge.title = KINDS[answer.kind] ?? "";
      note.append(" ");
    }
    made("span", note, "", answer.note).dir = "auto";
    const elsewhere = answer.elsewhere_after ?? answer.elsewhere;
    const hidden = `${percent(elsewhere)} of the attention is on markers and other parts that have no bar.`;
    if (elsewhere > 0) made("p", box, "soft", hidden);
    clearTimeout(this.saying);
    const far = `The answer moved ${sized(answer.tvd)}, the attention ${sized(share)}.`;
    const told = `${line.textContent}. ${far} ${answer.note}`;
    this.saying = setTimeout(() => (at("said").textContent = told), 700);
  }

  distance(list, name, word, share, number) {
    made("dt", list, "", name);
    const line = made("dd", list);
    made("b", line, "", word);
    made("i", made("span", line, "track"), "fill").style.setProperty("inline-size", `${100 * share}%`);
    made("span", line, "soft", number);
  }
}
