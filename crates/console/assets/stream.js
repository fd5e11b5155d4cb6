// The event stream over fetch: EventSource can't send an Authorization header.

import { send, session } from "./api.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const SILENCE_MS = 60_000;
const HIDDEN_MS = 60_000;

/**
 * Follows the events until `stop` of the answer is called, resuming where it broke off.
 * `onOpen(resumed)` says whether something may have been missed; `onState` gives `live` or `waiting`.
 */
export function follow({ onEvent, onOpen, onState }) {
  let last = null;
  let wait = FIRST_WAIT_MS;
  let stopped = false;
  let attempt = null;
  let timer = null;

  async function connect() {
    clearTimeout(timer);
    if (stopped || attempt || !session) return;
    const mine = (attempt = new AbortController());
    try {
      const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const response = await send("GET", "/events", { headers, signal: mine.signal });
      onOpen(last !== null);
      onState("live");
      await read(response.body, mine, (message) => {
        last = message.id || last;
        wait = FIRST_WAIT_MS;
        onEvent(JSON.parse(message.data));
      });
    } catch {
      // Whatever broke, the answer is the same: try again from the last event seen.
    }
    if (attempt === mine) attempt = null;
    if (stopped || mine.asleep) return;
    onState("waiting");
    timer = setTimeout(connect, wait + Math.random() * wait);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }

  function sleep() {
    if (!attempt) return;
    attempt.asleep = true;
    attempt.abort();
    attempt = null;
  }

  // A browser allows few connections to one host: a tab that nobody looks at gives its own back.
  let hidden = null;
  function visibility() {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(sleep, HIDDEN_MS);
    else connect();
  }
  document.addEventListener("visibilitychange", visibility);
  connect();

  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(hidden);
      document.removeEventListener("visibilitychange", visibility);
      attempt?.abort();
    },
  };
}

/** Reads until the stream ends, breaks, or is silent for longer than the heartbeats allow. */
async function read(body, attempt, onMessage) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = parser(onMessage);
  for (;;) {
    const alarm = setTimeout(() => attempt.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(alarm));
    if (done) return;
    parse(value);
  }
}

/** Cuts text that arrives in pieces into messages, as the HTML standard says. */
export function parser(onMessage) {
  let rest = "";
  let message = { id: "", event: "", data: [] };
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (message.data.length) onMessage({ ...message, data: message.data.join("\n") });
        message = { id: "", event: "", data: [] };
        continue;
      }
      const [, field, value] = /^([^:]*)(?:: ?)?(.*)$/.exec(line);
      if (field === "data") message.data.push(value);
      else if (field === "id" || field === "event") message[field] = value;
    }
  };
}
