"use strict";
// The form: a file is sent in and looked at, columns are chosen, an audit is asked for.

import { address, asked, at, counted, element, inAddress } from "./dealing.js";

const form = at("order");
let file = null; // what the server found in the uploaded file

const wrong = (sentence) => { at("wrong").textContent = sentence; };

async function upload(chosen) {
  if (!chosen) return;
  wrong("");
  const kind = chosen.name.split(".").pop().toLowerCase();
  if (!form.dataset.kinds.split(" ").includes(kind)) {
    wrong("Choose a file that ends in .csv, .tsv or .jsonl.");
    return;
  }
  if (chosen.size > Number(form.dataset.bytes)) {
    wrong(`The file is larger than ${Math.round(form.dataset.bytes / 1048576)} MB; give a smaller one, such as a sample of its rows.`);
    return;
  }
  at("reading").textContent = "Reading the file …";
  try {
    const query = new URLSearchParams({ kind, name: chosen.name.slice(-200) });
    show(await asked(`/api/uploads?${query}`, { method: "PUT", body: chosen, headers: { "content-type": "application/octet-stream" } }));
    address({ upload: file.id, corpus: null });
  } catch (fault) {
    forget();
    wrong(fault.message);
  }
  at("reading").textContent = "";
}

function forget() {
  file = null;
  at("table").hidden = true;
  at("file").value = "";
  address({ upload: null });
}

function show(found) {
  file = found;
  at("corpus").value = "";
  at("meaning").textContent = "";
  at("table").hidden = false;
  at("file-name").textContent = found.name;
  at("file-facts").textContent = `${counted(found.rows, "row")}, ${counted(found.columns.length, "column")}`;
  const names = found.columns.map((column) => column.name);
  const head = document.createElement("tr");
  for (const name of names) head.append(element("th", name, { scope: "col", dir: "auto" }));
  const rows = found.preview.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const place = document.createElement("td");
      place.append(element("div", cell, { dir: "auto" }));
      row.append(place);
    }
    return row;
  });
  at("preview").tHead.replaceChildren(head);
  at("preview").tBodies[0].replaceChildren(...rows);
  offer("text-column", names, found.text, null);
  offer("label-column", names, found.label, null);
  offer("query-column", names, found.query, "no column: each text stands alone");
  marked();
}

function offer(id, names, guess, none) {
  const options = names.filter((name) => name.trim()).map((name) => {
    const option = element("option", name, { dir: "auto" });
    option.value = name;
    return option;
  });
  if (none) options.unshift(element("option", none, { value: "" }));
  else if (!names.includes(guess)) options.unshift(element("option", "choose a column", { value: "" }));
  at(id).replaceChildren(...options);
  at(id).value = names.includes(guess) ? guess : "";
}

// What each column is for, above its name and as a sentence.
function marked() {
  const purposes = { "text-column": "text", "label-column": "class", "query-column": "question" };
  for (const cell of at("preview").tHead.rows[0].cells) {
    for (const old of cell.querySelectorAll("span")) old.remove();
    const name = cell.textContent;
    for (const [id, purpose] of Object.entries(purposes)) if (name && at(id).value === name) cell.prepend(element("span", purpose));
  }
  const label = file.columns.find((column) => column.name === at("label-column").value);
  const place = at("classes");
  place.replaceChildren();
  if (!label) return;
  if (!label.classes) {
    place.textContent = "This column does not look like classes: its values are all alike, too many, or hardly any occurs twice.";
    return;
  }
  place.append(`${counted(label.classes.length, "class", "classes")}${label.classes.length === 20 ? " or more" : ""}: `);
  label.classes.forEach((one, number) => place.append(number ? ", " : "", element("bdi", one.name), ` (${one.count.toLocaleString("en")})`));
}

const ticked = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);

function tally() {
  at("chosen").textContent = `${counted(ticked("explainers").length, "explainer")}, ${counted(ticked("audits").length, "audit")}`;
}

function order() {
  const wanted = {
    model: at("model").value,
    explainers: ticked("explainers"),
    audits: ticked("audits"),
    limit: at("limit").valueAsNumber,
    seed: at("seed").valueAsNumber,
  };
  if (at("corpus").value) return { ...wanted, corpus: at("corpus").value };
  if (!file) throw new Error("Choose a file first, or texts that are here.");
  const columns = { text_column: at("text-column").value, label_column: at("label-column").value };
  if (!columns.text_column || !columns.label_column) throw new Error("Say which columns hold the texts and the classes.");
  return { ...wanted, ...columns, upload: file.id, query_column: at("query-column").value || null };
}

async function start(event, started) {
  event.preventDefault();
  wrong("");
  at("start").disabled = true;
  try {
    const body = JSON.stringify(order());
    const job = await asked("/api/jobs", { method: "POST", body, headers: { "content-type": "application/json" } });
    await started(job);
  } catch (fault) {
    wrong(fault.message);
  }
  at("start").disabled = false;
}

at("file").addEventListener("change", () => upload(at("file").files[0]));
for (const name of ["dragover", "dragleave", "drop"]) {
  at("drop").addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") upload(event.dataTransfer.files[0]);
  });
}
at("corpus").addEventListener("change", () => {
  const { value, selectedOptions } = at("corpus");
  if (value) forget();
  at("meaning").textContent = selectedOptions[0].dataset.meaning || "";
  address({ corpus: value });
});
for (const id of ["text-column", "label-column", "query-column"]) at(id).addEventListener("change", marked);
for (const group of form.querySelectorAll("[data-choices]")) {
  for (const button of group.querySelectorAll("[data-set]")) {
    button.addEventListener("click", () => {
      for (const box of group.querySelectorAll("input")) box.checked = button.dataset.set === "usual" && "usual" in box.dataset;
      tally();
    });
  }
}
at("choice").addEventListener("change", tally);
at("model").addEventListener("change", () => address({ model: at("model").value }));

export async function prepare(started) {
  form.addEventListener("submit", (event) => start(event, started));
  tally();
  const model = inAddress("model");
  if ([...at("model").options].some((option) => option.value === model)) at("model").value = model;
  const corpus = inAddress("corpus");
  if (corpus && [...at("corpus").options].some((option) => option.value === corpus)) {
    at("corpus").value = corpus;
    at("meaning").textContent = at("corpus").selectedOptions[0].dataset.meaning || "";
  }
  if (/^[0-9a-f]{32}$/.test(inAddress("upload") || "")) {
    try {
      show(await asked(`/api/uploads/${inAddress("upload")}`));
    } catch {
      forget();
    }
  }
}
