/* The view as an address: what is in it restores the page. Long ones stay behind the # and are never sent. */

const LONGEST = 6000;
const NUMBERS = ["layer", "head", "place"];

const list = (text) => (text ? text.split(",").filter((part) => part !== "") : []);
const count = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : null);

export function read(place = location) {
  const fields = new URLSearchParams(place.search.length > 1 ? place.search : place.hash.slice(1));
  const act = { kind: fields.get("act") || "observed", weights: {}, items: [], target: fields.get("class") || null };
  for (const pair of list(fields.get("weights"))) {
    const [item, weight] = pair.split(":");
    if (count(item) !== null && Number(weight) >= 0 && Number(weight) <= 1) act.weights[item] = Number(weight);
  }
  act.items = list(fields.get("items")).map(count).filter((item) => item !== null);
  act.seed = count(fields.get("seed")) ?? 0;
  for (const name of NUMBERS) act[name] = count(fields.get(name));
  return {
    model: fields.get("model") ?? "",
    text: fields.get("text") ?? "",
    query: fields.get("query") ?? "",
    explainers: fields.has("explainers") ? list(fields.get("explainers")) : null,
    target: fields.get("target") ?? "",
    tree: fields.get("tree") ?? "",
    scale: ["shared", "raw"].includes(fields.get("scale")) ? fields.get("scale") : "row",
    compare: list(fields.get("compare")).slice(0, 2),
    act,
  };
}

function written(view) {
  const fields = new URLSearchParams();
  const put = (name, value) => value !== "" && value !== null && fields.set(name, String(value));
  put("model", view.model);
  put("text", view.text);
  put("query", view.query);
  if (view.explainers !== null) fields.set("explainers", view.explainers.join(","));
  put("target", view.target);
  put("tree", view.tree);
  if (view.scale !== "row") put("scale", view.scale);
  put("compare", view.compare.join(","));
  const act = view.act;
  if (act.kind !== "observed") put("act", act.kind);
  const pairs = Object.entries(act.weights).map(([item, weight]) => `${item}:${weight}`);
  if (act.kind === "set") put("weights", pairs.join(","));
  if (act.kind === "erase") put("items", act.items.join(","));
  if (act.kind === "permute") put("seed", act.seed);
  if (act.kind === "likeliest") put("class", act.target);
  for (const name of NUMBERS) put(name, act[name]);
  return fields.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/* Puts the view into the address: as a new step of the history, or in place of the present one. */
export function write(view, push) {
  const fields = written(view);
  const address = location.pathname + (fields === "" ? "" : (fields.length > LONGEST ? "#" : "?") + fields);
  if (push && address !== location.pathname + location.search + location.hash) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
