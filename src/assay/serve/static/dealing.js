"use strict";
// What the parts of the page of jobs share: questions to the server, the address, pieces of the page.

export const at = (id) => document.getElementById(id);

export async function asked(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer; is ‘assay serve’ still running?");
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.detail || `The server answered ${answer.status}.`);
  return told;
}

export function address(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  const text = query.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
}

export const inAddress = (name) => new URLSearchParams(location.search).get(name);

export function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export const counted = (number, word, many = `${word}s`) => `${number.toLocaleString("en")} ${number === 1 ? word : many}`;
