/* Small pieces of the page. Everything that comes from outside is put in as text. */

export function made(tag, parent, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

export const at = (id) => document.getElementById(id);

export function percent(share) {
  const text = (100 * share).toFixed(1);
  if (share < 1 && text === "100.0") return ">99.9%";
  return share > 0 && text === "0.0" ? "<0.1%" : `${text}%`;
}

export function points(change) {
  const amount = Math.abs(100 * change).toFixed(1);
  return amount === "0.0" ? "±0.0" : `${change < 0 ? "−" : "+"}${amount}`;
}

export const small = (number) => (number > 0 && number < 0.0005 ? "<0.001" : number.toFixed(3));

/* The probability of each class as a bar and as a number; with `after`, what was before is a mark on the bar. */
export function classes(element, before, after, most = 8) {
  const last = after ?? before;
  const rank = (name) => Math.max(before[name], last[name]);
  const names = Object.keys(before);
  if (names.length > most) names.sort((one, other) => rank(other) - rank(one));
  const winner = Object.keys(last).reduce((best, name) => (last[name] > last[best] ? name : best));
  const list = made("ul", null, "classes");
  for (const name of names.slice(0, most)) {
    const line = made("li", list, name === winner ? "winner" : "");
    made("bdi", line, "name", name);
    const track = made("span", line, "track");
    made("i", track, "fill").style.setProperty("inline-size", `${100 * last[name]}%`);
    if (after) made("i", track, "ghost").style.setProperty("inset-inline-start", `${100 * before[name]}%`);
    const share = made("span", line, "share", after ? `${percent(before[name])} → ` : "");
    made("b", share, "", percent(last[name]));
    if (after) made("span", line, "change", `${points(after[name] - before[name])} points`);
  }
  if (names.length > most) made("li", list, "soft", `and ${names.length - most} less likely classes`);
  element.replaceChildren(list);
}

/* A command with a button that copies it. */
export function copyable(element, command, label) {
  element.replaceChildren();
  if (!command) return;
  made("span", element, "soft", label);
  const box = made("pre", element, "", command);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  const button = made("button", element, "", "Copy");
  button.type = "button";
  const said = made("span", element, "unseen");
  said.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    const done = await copied(box);
    button.textContent = said.textContent = done ? "copied" : "selected; press Ctrl+C";
    setTimeout(() => (button.textContent = "Copy"), 2500);
  });
}

async function copied(box) {
  try {
    await navigator.clipboard.writeText(box.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(box);
    return document.execCommand("copy");
  }
}
