"use strict";
// Watches jobs. The server knows everything; this page only shows it, and the address says which job is open.

import { address, asked, at, counted, inAddress } from "./dealing.js";
import { prepare } from "./ordering.js";

const MARKS = { queued: "…", running: "▶", finished: "✓", failed: "✕", cancelled: "■", "timed out": "■" };
const OPEN = ["queued", "running"];
const shown = new Map(); // the card of each job, and what it shows
let stream = null;

async function refresh() {
  try {
    const { jobs } = await asked("/api/jobs");
    at("lost").textContent = "";
    at("none").hidden = jobs.length > 0;
    const there = new Set(jobs.map((job) => job.id));
    for (const [id, { card }] of shown) if (!there.has(id)) card.remove(), shown.delete(id);
    const cards = jobs.map((job) => draw(job));
    cards.forEach((card, place) => { if (at("jobs").children[place] !== card) at("jobs").insertBefore(card, at("jobs").children[place] || null); });
    follow(jobs);
  } catch (fault) {
    at("lost").textContent = fault.message;
    setTimeout(refresh, 2000);
  }
}

// One stream at a time: only the oldest job that is not over can move, and browsers allow few connections.
function follow(jobs) {
  const next = jobs.filter((job) => OPEN.includes(job.state)).pop();
  if (stream && (!next || stream.job !== next.id)) stop();
  if (!next || stream || document.hidden) return;
  stream = new EventSource(`/api/jobs/${next.id}/events`);
  stream.job = next.id;
  stream.onmessage = (event) => {
    at("lost").textContent = "";
    const job = JSON.parse(event.data);
    draw(job);
    if (!OPEN.includes(job.state)) stop(), refresh();
  };
  stream.onerror = () => {
    const gone = stream.readyState === EventSource.CLOSED;
    if (gone) stop(), setTimeout(refresh, 2000);
    setTimeout(() => { if (!stream || stream.readyState !== EventSource.OPEN) lost(); }, 1500);
  };
}

function lost() {
  if ([...shown.values()].some(({ job }) => OPEN.includes(job.state))) {
    at("lost").textContent = "The server does not answer. Jobs that run go on; this page goes on when the server is back.";
  }
}

function stop() {
  stream?.close();
  stream = null;
}

function facts(job) {
  const day = new Date(job.created * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const model = job.model === "train" ? "a small network is trained" : job.model;
  return [day, model, counted(job.explainers, "explainer"), counted(job.audits, "audit"), `at most ${counted(job.limit, "text")}`].join(" · ");
}

function draw(job) {
  if (!shown.has(job.id)) shown.set(job.id, { card: made(job), job: null });
  const held = shown.get(job.id);
  const { card } = held;
  const before = held.job;
  held.job = job;
  const find = (name) => card.querySelector(`.${name}`);
  card.dataset.state = job.state;
  find("state").textContent = job.stopping ? "stopping" : job.state;
  find("mark").textContent = MARKS[job.state];
  find("words").textContent = job.words;
  find("going").hidden = job.state !== "running";
  const bar = card.querySelector("progress");
  if (job.progress?.total) {
    bar.max = job.progress.total;
    bar.value = Math.min(job.progress.done, job.progress.total);
    bar.setAttribute("aria-valuetext", job.words);
  } else {
    bar.removeAttribute("value");
    bar.removeAttribute("aria-valuetext");
  }
  find("cancel").hidden = !OPEN.includes(job.state) || job.stopping;
  find("resume").hidden = !job.broke;
  find("remove").hidden = OPEN.includes(job.state);
  find("report").hidden = !job.report;
  if (job.report) find("report").href = job.report;
  const open = inAddress("job") === job.id;
  card.classList.toggle("open", open);
  if (before && before.state !== job.state) {
    at("news").textContent = `${job.title}: ${job.state}. ${OPEN.includes(job.state) ? "" : job.words}`;
    if (find("more").open) log(job.id);
  }
  return card;
}

function made(job) {
  const card = at("job").content.firstElementChild.cloneNode(true);
  const find = (name) => card.querySelector(`.${name}`);
  const title = find("title");
  title.textContent = job.title;
  title.href = `/jobs?job=${job.id}`;
  title.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openJob(job.id);
  });
  card.querySelector("progress").setAttribute("aria-label", `Progress of ${job.title}`);
  for (const name of ["cancel", "resume", "remove", "report"]) {
    find(name).setAttribute("aria-label", `${find(name).textContent}: ${job.title}`);
  }
  find("facts").textContent = facts(job);
  find("command").textContent = job.command;
  find("cancel").addEventListener("click", () => act(`/api/jobs/${job.id}/cancel`, "POST"));
  find("resume").addEventListener("click", () => act(`/api/jobs/${job.id}/resume`, "POST"));
  find("remove").addEventListener("click", () => {
    if (confirm("Remove this job with all that it left, also its results?")) act(`/api/jobs/${job.id}`, "DELETE");
  });
  find("take").addEventListener("click", async (event) => {
    try {
      await navigator.clipboard.writeText(job.command);
      event.target.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(find("command"));
      event.target.textContent = "Selected";
    }
    setTimeout(() => { event.target.textContent = "Copy"; }, 2000);
  });
  find("more").addEventListener("toggle", () => {
    if (find("more").open) log(job.id);
  });
  if (inAddress("job") === job.id) find("more").open = true;
  return card;
}

function openJob(id) {
  address({ job: id });
  for (const [each, { card, job }] of shown) {
    draw(job);
    if (each === id) card.querySelector(".more").open = true;
  }
}

// The end of the log, again and again while it is open and can grow.
async function log(id) {
  const held = shown.get(id);
  if (!held || !held.card.querySelector(".more").open) return;
  clearTimeout(held.timer);
  try {
    const place = held.card.querySelector(".log");
    const text = (await asked(`/api/jobs/${id}`)).log || "nothing yet";
    if (place.textContent !== text) {
      place.textContent = text;
      place.scrollTop = place.scrollHeight;
    }
  } catch {
    return; // the stream says that the server is gone
  } finally {
    if (OPEN.includes(held.job.state)) held.timer = setTimeout(() => log(id), 2000);
  }
}

async function act(place, method) {
  try {
    await asked(place, { method });
    await refresh();
  } catch (fault) {
    at("lost").textContent = fault.message;
  }
}

document.addEventListener("visibilitychange", () => (document.hidden ? stop() : refresh()));
addEventListener("pagehide", stop);

await prepare(async (job) => {
  address({ job: job.id });
  await refresh();
  openJob(job.id);
  shown.get(job.id)?.card.querySelector(".title").focus();
});
await refresh();
shown.get(inAddress("job"))?.card.scrollIntoView({ block: "nearest" });
