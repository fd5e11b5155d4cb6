// Talks to the platform API and keeps the session of this tab.

const KEY = "paddock.session";
const WHY = "paddock.ended";
const BASE = "/api/v1";

/** Who is signed in: `{token, expires_at, user}`, or null. */
export let session = JSON.parse(sessionStorage.getItem(KEY) ?? "null");

/** Keeps a session for as long as this tab lives. */
export function sessionStart(next) {
  session = next;
  sessionStorage.setItem(KEY, JSON.stringify(next));
}

/** Forgets the session and everything read with it: only a fresh page surely holds nothing. */
export function sessionEnd(why = "") {
  session = null;
  sessionStorage.removeItem(KEY);
  sessionStorage.setItem(WHY, why);
  location.reload();
}

/** Why the last session ended, once. */
export function sessionEndReason() {
  const why = sessionStorage.getItem(WHY);
  sessionStorage.removeItem(WHY);
  return why;
}

/** What went wrong, from the server's problem document (RFC 9457). */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || `The server answered ${status} without saying why.`);
    this.status = status;
    this.fields = Array.isArray(body.errors) ? body.errors : [];
    this.requestId = body.request_id ?? null;
  }
}

/** Sends one request and gives the raw response; throws a `Problem` for everything but 2xx. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { Accept: "application/json", ...headers };
  if (session) all.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) all["Content-Type"] = "application/json";
  const sent = session;
  let response;
  try {
    response = await fetch(BASE + path, { method, headers: all, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server can't be reached. Check that it runs, then try again." });
  }
  if (response.ok) return response;
  const problem = new Problem(response.status, await response.json().catch(() => ({})));
  if (response.status === 401 && sent && sent === session) {
    sessionEnd("Your session has ended. Sign in again to go on.");
  }
  throw problem;
}

/** Sends one request and gives the answer's JSON, or null when there is none. */
export async function call(method, path, body, headers) {
  const response = await send(method, path, { body, headers });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** Reads a list page by page; `most` bounds how many items are read. */
export async function list(path, most = 5000) {
  const items = [];
  let after = null;
  do {
    const query = new URLSearchParams({ limit: 500, ...(after && { after }) });
    const page = await call("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`);
    items.push(...page.items);
    after = page.next;
  } while (after && items.length < most);
  return { items, more: Boolean(after) };
}

/**
 * Makes a sender for one form: a repeat after a lost answer carries the same idempotency key,
 * so that nothing is made twice.
 */
export function creator(path) {
  let key = null;
  return async (body) => {
    key ??= randomKey();
    try {
      const made = await call("POST", path, body, { "Idempotency-Key": key });
      key = null;
      return made;
    } catch (problem) {
      if (problem.status) key = null;
      throw problem;
    }
  };
}

function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
