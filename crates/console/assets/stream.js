// Client of the event stream, over fetch: EventSource can't send an Authorization header.

import { send, session } from "./api.js";

const MIN_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 15_000;
const HEARTBEAT_TIMEOUT_MS = 60_000;
const HIDDEN_TIMEOUT_MS = 60_000;

/**
 * Follows the events until the returned `stop` is called, and resumes after a disconnect.
 * `onOpen(resumed)` is false if events may have been missed; `onState` gets `live` or `waiting`.
 */
export function follow({ onEvent, onOpen, onState }) {
  let last = null;
  let backoff = MIN_BACKOFF_MS;
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
        backoff = MIN_BACKOFF_MS;
        onEvent(JSON.parse(message.data));
      });
    } catch {
      // Any error is handled by reconnecting from the last event.
    }
    if (attempt === mine) attempt = null;
    if (stopped || mine.asleep) return;
    onState("waiting");
    timer = setTimeout(connect, backoff + Math.random() * backoff);
    backoff = Math.min(backoff * 2, MAX_BACKOFF_MS);
  }

  function sleep() {
    if (!attempt) return;
    attempt.asleep = true;
    attempt.abort();
    attempt = null;
  }

  // Browsers limit the connections per host: a hidden tab closes its own.
  let hidden = null;
  function visibility() {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(sleep, HIDDEN_TIMEOUT_MS);
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

/** Reads until the stream ends, fails, or misses its heartbeats. */
async function read(body, attempt, onMessage) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const parse = parser(onMessage);
  for (;;) {
    const timeout = setTimeout(() => attempt.abort(), HEARTBEAT_TIMEOUT_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(timeout));
    if (done) return;
    parse(value);
  }
}

/** Parses chunks of text into messages, as the HTML standard specifies. */
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
