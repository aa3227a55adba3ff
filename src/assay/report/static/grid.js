"use strict";
/* A heat table: every explainer is a row, every word a column, cut into blocks of the width that there is.

   assayGrid.show(element, example, options) draws into the element and returns {update(options)}.
   example: {words: [string], rows: [{name, scores: [number or null], kind, remark, step}]}
     kind is "signed", "weights" or "flags"; step, where given, is how finely the scores are known.
   options: {scale: "row" | "shared" | "raw", query: a word to be marked, legend: false to leave it out}
   assayGrid.legend(element, scale) says what a full bar means. All texts are shown as text. */
window.assayGrid = (() => {
  const LEVELS = 8;
  const USUAL = { scale: "row", query: "", legend: true };
  const WIDEST = 170; // pixels of the widest column
  const LEGENDS = {
    row: "A full bar is the strongest word of its row: compare words within a row, not between rows.",
    shared: "A full bar is the strongest score of all rows of this text: rows of one text can be compared.",
    raw: "A full bar is a score of 1, in every text: all scores can be compared, and small ones look small.",
  };

  function made(tag, parent, name, text) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  function value(score, step) {
    if (score === null || !Number.isFinite(score)) return "no value";
    const digits = step > 0 && step < 1 ? Math.min(Math.ceil(-Math.log10(step)), 20) : 0;
    const text = step > 0 ? Number(score.toFixed(digits)) : Number(score.toPrecision(3));
    return String(text).replaceAll("-", "−");
  }

  function told(row, score) {
    return row.kind === "flags" ? (score > 0 ? "marked" : "not marked") : value(score, row.step);
  }

  /* A word as a column head: what cannot be seen gets a sign. */
  function shown(word) {
    const text = String(word).trim();
    return text === "" ? (word === "" ? "·" : "␣") : text.length > 60 ? text.slice(0, 60) + "…" : text;
  }

  function peak(scores) {
    let most = 0;
    for (const score of scores) if (Number.isFinite(score)) most = Math.max(most, Math.abs(score));
    return most;
  }

  /* The score of a full bar, for each row. */
  function peaks(rows, scale) {
    if (scale === "raw") return rows.map(() => 1);
    const own = rows.map((row) => peak(row.scores));
    const all = own.filter((_, place) => rows[place].kind !== "flags").reduce((most, each) => Math.max(most, each), 0);
    return rows.map((row, place) => (scale === "shared" && row.kind !== "flags" ? all : own[place]));
  }

  function rightToLeft(words) {
    for (const word of words.slice(0, 200)) {
      const strong = /[\p{L}]/u.exec(word);
      if (strong) return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(strong[0]);
    }
    return false;
  }

  function legend(element, scale) {
    element.replaceChildren();
    element.classList.add("grid-legend");
    for (const [name, text] of [["for", "gets weight, or speaks for the class"], ["against", "speaks against it"]]) {
      const part = made("span", element, "grid-key");
      const sample = made("i", part, "grid-sample " + name);
      sample.setAttribute("aria-hidden", "true");
      part.append(" " + text);
    }
    made("span", element, "", LEGENDS[scale]);
  }

  class Grid {
    constructor(element, example, options) {
      this.element = element;
      this.example = example;
      this.options = { ...USUAL, ...options };
      this.blocks = [];
      this.place = { row: 0, column: 0 };
      this.width = 0;
      this.full = peaks(example.rows, this.options.scale);
      element.replaceChildren();
      element.classList.add("grid");
      this.key = this.options.legend ? made("p", element) : null;
      this.body = made("div", element, "grid-body");
      this.status = made("p", element, "grid-status");
      this.backwards = rightToLeft(example.words);
      this.body.addEventListener("keydown", (event) => this.pressed(event));
      this.body.addEventListener("focusin", (event) => this.reached(event));
      this.body.addEventListener("pointermove", (event) => this.hovered(event));
      this.body.addEventListener("pointerleave", () => this.quiet());
      this.watcher = new IntersectionObserver((seen) => this.seen(seen), { rootMargin: "600px 0px" });
      this.resizer = new ResizeObserver(() => this.fit());
      this.resizer.observe(element);
      this.fit();
      this.dress();
    }

    /* Cuts the words into blocks of the width that there is, if that has changed. */
    fit() {
      const width = this.element.clientWidth;
      if (width === 0 || Math.abs(width - this.width) < 2) return;
      this.width = width;
      const focused = this.body.contains(document.activeElement);
      this.watcher.disconnect();
      this.body.replaceChildren();
      const narrow = width < 560;
      this.body.classList.toggle("narrow", narrow);
      this.blocks = this.cut(width - (narrow ? 102 : 176));
      for (const block of this.blocks) {
        block.element = made("div", this.body, "grid-block");
        block.element.style.setProperty("min-height", `${2.2 + 1.75 * this.example.rows.length}rem`);
        this.watcher.observe(block.element);
      }
      const current = this.block(this.place.column);
      if (current) this.fill(current);
      if (focused) this.focus();
      this.quiet();
    }

    cut(room) {
      const pen = made("canvas").getContext("2d");
      const style = getComputedStyle(this.element);
      pen.font = `${style.fontSize} ${style.fontFamily}`;
      const blocks = [];
      let used = Infinity;
      this.example.words.forEach((word, place) => {
        const wide = Math.min(WIDEST, Math.max(30, Math.ceil(0.9 * pen.measureText(shown(word)).width) + 13));
        if (used + wide > room) {
          blocks.push({ first: place, last: place, element: null, cells: null });
          used = 0;
        }
        used += wide;
        blocks.at(-1).last = place + 1;
      });
      return blocks;
    }

    block(column) {
      return this.blocks.find((block) => block.first <= column && column < block.last);
    }

    seen(entries) {
      for (const entry of entries) {
        if (entry.isIntersecting) this.fill(this.blocks.find((block) => block.element === entry.target));
      }
    }

    fill(block) {
      if (!block || block.cells) return;
      const { words, rows } = this.example;
      const table = made("table", block.element);
      table.setAttribute("role", "grid");
      table.setAttribute("aria-label", `Words ${block.first + 1} to ${block.last} of ${words.length}`);
      table.dir = this.backwards ? "rtl" : "ltr";
      const top = made("tr", made("thead", table));
      made("td", top, "grid-corner", block.first ? `${block.first + 1} …` : "");
      block.heads = [];
      for (let place = block.first; place < block.last; place++) {
        const head = made("th", top, "", shown(words[place]));
        head.scope = "col";
        head.dir = "auto";
        block.heads.push(head);
      }
      const body = made("tbody", table);
      block.cells = rows.map((row, place) => this.line(body, row, place, block));
      block.element.style.removeProperty("min-height");
      this.watcher.unobserve(block.element);
      this.paint(block);
      this.mark();
    }

    line(body, row, place, block) {
      const line = made("tr", body);
      const name = made("th", line, "grid-name");
      name.scope = "row";
      made("bdi", name, "", row.name);
      if (row.remark && block.first === 0) made("small", name, "", row.remark);
      const cells = [];
      for (let column = block.first; column < block.last; column++) {
        const cell = made("td", line);
        made("span", cell, "grid-value", told(row, row.scores[column]));
        cell.tabIndex = -1;
        cell.dataset.row = place;
        cell.dataset.column = column;
        cells.push(cell);
      }
      return cells;
    }

    /* Gives the cells of a block their bars. */
    paint(block) {
      const rows = this.example.rows;
      const terms = this.options.query.toLowerCase().split(/\s+/).filter((term) => term !== "");
      block.heads.forEach((head, offset) => {
        const word = String(this.example.words[block.first + offset]).toLowerCase();
        head.classList.toggle("hit", terms.some((term) => word.includes(term)));
      });
      block.cells.forEach((cells, place) => {
        const row = rows[place];
        cells.forEach((cell, offset) => {
          const score = row.scores[block.first + offset];
          const amount = this.full[place] > 0 && Number.isFinite(score) ? Math.min(1, Math.abs(score) / this.full[place]) : 0;
          cell.className = score < 0 ? "against" : "for";
          cell.classList.toggle("flag", row.kind === "flags" && score > 0);
          cell.dataset.level = Math.round(LEVELS * amount);
          cell.style.setProperty("--amount", amount.toFixed(3));
        });
      });
    }

    /* The one cell that the tab key reaches. */
    mark() {
      for (const cell of this.body.querySelectorAll("td[tabindex='0']")) cell.tabIndex = -1;
      const cell = this.cell();
      if (cell) cell.tabIndex = 0;
    }

    cell() {
      const block = this.block(this.place.column);
      return block && block.cells ? (block.cells[this.place.row] || [])[this.place.column - block.first] : undefined;
    }

    focus() {
      this.fill(this.block(this.place.column));
      this.mark();
      const cell = this.cell();
      if (cell) cell.focus();
    }

    pressed(event) {
      if (event.altKey || event.metaKey) return;
      const last = { row: this.example.rows.length - 1, column: this.example.words.length - 1 };
      const { row, column } = this.place;
      const block = this.block(column);
      const ahead = this.backwards ? -1 : 1;
      const target = {
        ArrowRight: [row, column + ahead],
        ArrowLeft: [row, column - ahead],
        ArrowDown: [row + 1, column],
        ArrowUp: [row - 1, column],
        Home: [event.ctrlKey ? 0 : row, event.ctrlKey ? 0 : block.first],
        End: [event.ctrlKey ? last.row : row, event.ctrlKey ? last.column : block.last - 1],
        PageDown: [row, block.last],
        PageUp: [row, block.first - 1],
      }[event.key];
      if (!target) return;
      event.preventDefault();
      const within = (number, most) => Math.max(0, Math.min(number, most));
      this.place = { row: within(target[0], last.row), column: within(target[1], last.column) };
      this.focus();
    }

    reached(event) {
      const cell = event.target.closest("td[data-row]");
      if (!cell) return;
      this.place = { row: Number(cell.dataset.row), column: Number(cell.dataset.column) };
      this.mark();
      this.tell(cell);
    }

    /* A pointer that rests while the page scrolls below it is not asking. */
    hovered(event) {
      const at = `${event.clientX} ${event.clientY}`;
      const cell = event.target.closest("td[data-row]");
      if (cell && at !== this.at) this.tell(cell);
      this.at = at;
    }

    tell(cell) {
      const row = this.example.rows[Number(cell.dataset.row)];
      const column = Number(cell.dataset.column);
      this.status.replaceChildren();
      made("bdi", this.status, "grid-word", shown(this.example.words[column]));
      this.status.append(` (word ${column + 1}) · `);
      made("bdi", this.status, "", row.name);
      this.status.append(": ");
      made("b", this.status, "", told(row, row.scores[column]));
    }

    quiet() {
      this.status.textContent = "Hover over a cell, or move with the arrow keys, to see its value.";
    }

    dress() {
      this.full = peaks(this.example.rows, this.options.scale);
      if (this.key) legend(this.key, this.options.scale);
      this.element.dataset.scale = this.options.scale;
      for (const block of this.blocks) if (block.cells) this.paint(block);
    }

    rest() {
      this.resizer.disconnect();
      this.watcher.disconnect();
    }

    update(options) {
      this.options = { ...this.options, ...options };
      this.dress();
    }
  }

  const drawn = new WeakMap(); // the grid of each element, so that a new one can put an old one to rest

  addEventListener("beforeprint", () => {
    for (const element of document.querySelectorAll(".grid")) {
      const grid = drawn.get(element);
      if (grid) grid.blocks.forEach((block) => grid.fill(block));
    }
  });

  function show(element, example, options) {
    const before = drawn.get(element);
    if (before) before.rest();
    const grid = new Grid(element, example, options || {});
    drawn.set(element, grid);
    return { update: (changed) => grid.update(changed) };
  }

  return { show, legend, value, made };
})();
