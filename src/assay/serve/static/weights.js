/* Weights as bars that can be pulled: one for each word (or sentence), in lines like the text.
   Only the lines in view are in the page, so that long texts stay light. */
import { made } from "./showing.js";

const TOPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const AROUND = 2; // lines that are ready above and below the view
const GRIP = 14; // pixels around the top of a bar within which it is taken without a jump

/* The weights when those in `hand` are as given: the others share the rest in the proportions of `base`, in which
   `elsewhere` stands for what is not shown. */
export function shared(base, hand, elsewhere = 0) {
  let room = 1;
  let rest = elsewhere;
  for (const weight of hand.values()) room -= weight;
  base.forEach((weight, item) => (rest += hand.has(item) ? 0 : weight));
  const others = base.length - hand.size + (elsewhere > 0 ? 1 : 0);
  const share = (weight) => Math.max(0, room) * (rest > 0 ? weight / rest : 1 / others);
  return base.map((weight, item) => hand.get(item) ?? share(weight));
}

/* Takes a weight in the hand; those taken before give way when there is not enough. */
export function take(hand, item, weight, all) {
  hand.delete(item);
  let held = 0;
  for (const other of hand.values()) held += other;
  const room = 1 - weight;
  if (held > room) for (const [other, before] of hand) hand.set(other, (before * room) / held);
  hand.set(item, weight);
  if (hand.size === all) hand.delete(hand.keys().next().value); // one must be free to take what is left
}

const top = (weights) => {
  const most = weights.reduce((high, weight) => Math.max(high, weight), 0);
  return TOPS.find((each) => each >= most - 1e-9) ?? 1;
};

function short(weight) {
  if (weight < 0.00095) return weight > 0 ? "<.001" : "0";
  return weight.toFixed(weight >= 0.0995 ? 2 : 3).replace(/^0\./, ".");
}

function rightToLeft(labels) {
  const strong = /\p{L}/u.exec(labels.slice(0, 100).join(" "));
  return strong !== null && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(strong[0]);
}

export class Strip {
  /* pulled(item, weight) and picked(items) hear what a person does. */
  constructor(element, { pulled, picked, scaled }) {
    this.element = element;
    this.told = { pulled, picked, scaled };
    this.picks = new Set();
    this.labels = [];
    this.body = made("div", element, "lines");
    this.lines = [];
    this.drag = null;
    this.listen();
  }

  listen() {
    const body = this.body;
    body.addEventListener("pointerdown", (event) => this.grab(event));
    body.addEventListener("pointermove", (event) => this.pull(event));
    for (const kind of ["pointerup", "pointercancel"]) body.addEventListener(kind, () => this.release());
    body.addEventListener("keydown", (event) => this.press(event));
    body.addEventListener("click", (event) => {
      const word = event.target.closest(".word");
      if (word) this.pick(Number(word.parentElement.dataset.item));
    });
    this.element.addEventListener("scroll", () => this.render(), { passive: true });
    body.addEventListener("focusout", () => requestAnimationFrame(() => this.render()));
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /* Another text: its items, and whether they are sentences. `still` says why they cannot be moved. */
  show(labels, observed, { sentences = false, still = null } = {}) {
    this.labels = labels;
    this.observed = observed;
    this.weights = observed;
    this.sentences = sentences;
    this.still = still;
    this.hand = new Map();
    this.chosen = new Set();
    this.picks = new Set([...this.picks].filter((item) => item < labels.length));
    this.element.classList.toggle("sentences", sentences);
    this.body.dir = rightToLeft(labels) ? "rtl" : "ltr";
    this.width = 0;
    this.fit();
  }

  set(weights, observed, hand, chosen) {
    Object.assign(this, { weights, observed, hand, chosen: new Set(chosen) });
    if (this.drag === null) this.top = top([...weights, ...observed]);
    this.paint();
  }

  /* Cuts the items into lines of the width that there is. */
  fit() {
    const width = this.element.clientWidth - 2;
    if (width <= 0 || this.labels.length === 0 || width === this.width) return;
    this.width = width;
    this.top ??= top([...this.weights, ...this.observed]);
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest(".item") : null;
    const pen = document.createElement("canvas").getContext("2d");
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(this.element);
    pen.font = `${fontWeight} ${fontSize} ${fontFamily}`; // the shorthand is empty where numbers are tabular
    const wide = (label) => Math.min(140, Math.max(42, Math.ceil(pen.measureText(label.slice(0, 40)).width) + 16));
    const block = Math.min(width, Math.max(150, Math.floor(width / Math.max(2, Math.round(width / 210)))));
    this.lines = [];
    let used = Infinity;
    this.labels.forEach((label, item) => {
      const needed = this.sentences ? block : wide(label);
      if (used + needed > width) {
        this.lines.push({ items: [], element: null });
        used = 0;
      }
      used += needed;
      this.lines.at(-1).items.push({ item, wide: needed });
    });
    this.body.replaceChildren();
    this.tall = this.draw(this.lines[0], 0).offsetHeight;
    this.body.style.setProperty("block-size", `${this.tall * this.lines.length}px`);
    this.render();
    if (focused) this.focus(Number(focused.dataset.item));
  }

  render() {
    if (this.lines.length === 0) return;
    const above = this.element.scrollTop;
    const first = Math.floor(above / this.tall) - AROUND;
    const last = Math.ceil((above + this.element.clientHeight) / this.tall) + AROUND;
    this.lines.forEach((line, number) => {
      const near = number >= first && number <= last;
      if (near && line.element === null) this.draw(line, number);
      else if (!near && line.element !== null && !line.element.contains(document.activeElement)) {
        line.element.remove();
        line.element = null;
      }
    });
  }

  draw(line, number) {
    line.element = document.createElement("div");
    line.element.className = "line";
    line.element.style.setProperty("inset-block-start", `${(this.tall ?? 0) * number}px`);
    for (const { item, wide } of line.items) line.element.append(this.item(item, wide));
    const before = this.lines.slice(number + 1).find((later) => later.element !== null);
    this.body.insertBefore(line.element, before ? before.element : null); // the tab key follows the text
    for (const part of line.element.children) this.dress(part);
    return line.element;
  }

  item(item, wide) {
    const part = made("div", null, "item");
    part.dataset.item = item;
    part.style.setProperty("inline-size", `${wide}px`);
    const bar = made("div", part, "bar");
    bar.tabIndex = 0;
    bar.setAttribute("role", "slider");
    bar.setAttribute("aria-orientation", "vertical");
    bar.setAttribute("aria-valuemin", "0");
    bar.setAttribute("aria-valuemax", "1");
    const kind = this.sentences ? "sentence" : "word";
    bar.setAttribute("aria-label", `Weight of “${this.labels[item]}”, ${kind} ${item + 1} of ${this.labels.length}`);
    if (this.still) bar.setAttribute("aria-disabled", "true");
    made("i", bar, "fill");
    made("i", bar, "ghost");
    made("span", bar, "value");
    const word = made("button", part, "word", this.labels[item].trim() || "␣");
    word.type = "button";
    word.dir = "auto";
    word.tabIndex = -1;
    word.title = this.labels[item];
    return part;
  }

  paint() {
    for (const part of this.body.querySelectorAll(".item")) this.dress(part);
    this.told.scaled(this.top);
  }

  dress(part) {
    const item = Number(part.dataset.item);
    const [bar, word] = part.children;
    const weight = this.weights[item];
    const seen = this.observed[item];
    const [fill, ghost, value] = bar.children;
    const height = (share) => `${Math.min(100, (100 * share) / this.top)}%`;
    fill.style.setProperty("block-size", height(weight));
    ghost.style.setProperty("inset-block-end", height(seen));
    value.style.setProperty("inset-block-end", height(weight));
    value.textContent = short(weight);
    const picked = this.picks.has(item);
    const marks = { held: this.hand.has(item), shifted: Math.abs(weight - seen) > 1e-4, over: weight > this.top + 1e-9 };
    for (const [name, on] of Object.entries(marks)) part.classList.toggle(name, on);
    part.classList.toggle("none", weight < 1e-9);
    part.classList.toggle("picked", picked);
    part.classList.toggle("gone", this.chosen.has(item) && weight < 1e-9);
    bar.setAttribute("aria-valuenow", weight.toFixed(4));
    const also = [marks.held ? "set by hand" : "", picked ? "selected" : ""].filter(Boolean).join(", ");
    bar.setAttribute("aria-valuetext", `${weight.toFixed(3)}, observed ${seen.toFixed(3)}${also ? `, ${also}` : ""}`);
    word.setAttribute("aria-pressed", String(picked));
  }

  grab(event) {
    const bar = event.target.closest(".bar");
    if (!bar || event.button !== 0 || this.still) return;
    event.preventDefault();
    bar.focus({ preventScroll: true });
    bar.setPointerCapture(event.pointerId);
    const box = bar.getBoundingClientRect();
    const item = Number(bar.parentElement.dataset.item);
    const tip = box.bottom - (Math.min(1, this.weights[item] / this.top) * box.height);
    const off = tip - event.clientY;
    this.drag = { item, bottom: box.bottom, tall: box.height, off: Math.abs(off) <= GRIP ? off : 0 };
    this.element.classList.add("dragging");
    if (this.drag.off === 0) this.pull(event);
  }

  pull(event) {
    if (this.drag === null) return;
    const { item, bottom, tall, off } = this.drag;
    const height = (bottom - event.clientY - off) / tall;
    const weight = this.top * (height <= 1 ? height : Math.exp(2 * (height - 1))); // above the bar it goes faster
    this.told.pulled(item, Math.max(0, Math.min(1, weight)));
  }

  release() {
    if (this.drag === null) return;
    this.drag = null;
    this.element.classList.remove("dragging");
    this.top = top([...this.weights, ...this.observed]);
    this.paint();
  }

  press(event) {
    const part = event.target.closest(".item");
    if (!part || event.ctrlKey || event.altKey || event.metaKey) return;
    const item = Number(part.dataset.item);
    const now = this.weights[item];
    const forward = this.body.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    if (event.shiftKey && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      this.focus(item + (event.key === forward ? 1 : -1));
    } else if ([" ", "Delete", "Backspace"].includes(event.key) && event.target.matches(".bar")) {
      this.pick(item);
    } else {
      const moved = {
        ...{ ArrowUp: now + 0.01, ArrowRight: now + 0.01, ArrowDown: now - 0.01, ArrowLeft: now - 0.01 },
        ...{ PageUp: now + 0.1, PageDown: now - 0.1, Home: 0, End: 1 },
      }[event.key];
      if (moved === undefined || event.shiftKey) return;
      if (!this.still) this.told.pulled(item, Math.max(0, Math.min(1, moved)));
    }
    event.preventDefault();
  }

  focus(item) {
    const number = this.lines.findIndex((line) => line.items.some((each) => each.item === item));
    if (number < 0) return;
    const line = this.lines[number];
    if (line.element === null) this.draw(line, number);
    line.element.querySelector(`[data-item="${item}"] .bar`).focus();
  }

  pick(item) {
    if (!this.picks.delete(item)) this.picks.add(item);
    this.paint();
    this.told.picked(this.picks);
  }
}
