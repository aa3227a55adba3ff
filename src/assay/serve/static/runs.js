"use strict";
/* Comfort for the pages of runs; all of them work without it. */

const form = document.querySelector(".browse");

function chosen() {
  return [...form.querySelectorAll("input[name=run]:checked")].map((box) => box.value);
}

/* How many are chosen, and what can be done with so many. */
function tell() {
  const told = form.querySelector(".chosen");
  const most = Number(told.dataset.most);
  const count = chosen().length;
  told.textContent = count > most ? `${count} chosen, at most ${most} fit side by side` : count ? `${count} chosen` : "Choose runs to";
  for (const button of form.querySelectorAll("button[data-least]")) {
    button.disabled = count < Number(button.dataset.least) || count > most;
  }
}

/* The address restores what is chosen, too. */
function keep() {
  const address = new URL(location.href);
  address.searchParams.delete("run");
  for (const id of chosen()) address.searchParams.append("run", id);
  history.replaceState(null, "", address);
}

if (form) {
  form.addEventListener("change", (event) => {
    if (event.target.name === "run") {
      tell();
      keep();
    } else if (event.target.tagName === "SELECT") {
      form.requestSubmit();
    }
  });
  /* addresses without what is empty, and with nothing but runs where these are shown together */
  let submitter = null;
  form.addEventListener("submit", (event) => {
    submitter = event.submitter;
  });
  form.addEventListener("formdata", (event) => {
    const apart = submitter !== null && submitter.hasAttribute("formaction");
    for (const [name, value] of [...event.formData.entries()]) {
      const usual = name === "sort" && value === "newest";
      if (name !== "run" && (apart || usual || value === "")) event.formData.delete(name);
    }
  });
  window.addEventListener("pageshow", tell);
  tell();
}

/* A button beside each command that copies it. */
for (const box of document.querySelectorAll(".command")) {
  const code = box.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this command");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  box.append(button);
}
