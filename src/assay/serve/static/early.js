/* Runs before the page is drawn: a Control+Enter pressed before explain.js listens is remembered, not lost. */
window.assayEarly = false;
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) window.assayEarly = true;
});
