/* Questions to the app: JSON there, JSON back, and a sentence when it says no. */

export class Refused extends Error {}

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

async function refusal(answer) {
  const text = await answer.text().catch(() => "");
  try {
    return String(JSON.parse(text).detail);
  } catch {
    return text && text.length < 300 && !text.startsWith("<") ? text : `The app answered with an error (${answer.status}).`;
  }
}

/* What the app answers. When it has no room it is asked once more, after the time that it names; `busy` hears of it. */
export async function ask(path, body, { signal, busy } = {}) {
  const request = { signal };
  if (body !== undefined) {
    request.method = "POST";
    request.headers = { "content-type": "application/json" };
    request.body = JSON.stringify(body);
  }
  for (let turn = 0; ; turn++) {
    let answer;
    try {
      answer = await fetch(path, request);
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
      throw new Refused("The app does not answer. Is “assay serve” still running?");
    }
    if (answer.ok) return answer.json();
    if (answer.status !== 503 || turn > 0) throw new Refused(await refusal(answer));
    const seconds = Number(answer.headers.get("retry-after")) || 2;
    if (busy) busy(seconds);
    await pause(seconds);
  }
}

/* Sends one question at a time, and always the newest; those in between are never sent.
   received(answer, question, newest) and failed(fault, question) hear of it. */
export function latest(send, received, failed) {
  let busy = false;
  let next = null;
  return async (question) => {
    next = { question };
    if (busy) return;
    busy = true;
    while (next !== null) {
      const now = next.question;
      next = null;
      try {
        received(await send(now), now, next === null);
      } catch (fault) {
        if (next === null) failed(fault, now);
      }
    }
    busy = false;
  };
}
