// Client of the platform API, and the session of this tab.

const KEY = "paddock.session";
const END_REASON_KEY = "paddock.ended";
const BASE = "/api/v1";

/** The current session, `{token, expires_at, user}`, or null. */
export let session = JSON.parse(sessionStorage.getItem(KEY) ?? "null");

/** Stores a session for the lifetime of this tab. */
export function sessionStart(next) {
  session = next;
  sessionStorage.setItem(KEY, JSON.stringify(next));
}

/** Ends the session and reloads the page, which drops everything that was read with it. */
export function sessionEnd(reason = "") {
  session = null;
  sessionStorage.removeItem(KEY);
  sessionStorage.setItem(END_REASON_KEY, reason);
  location.reload();
}

/** Returns, once, why the last session ended. */
export function sessionEndReason() {
  const reason = sessionStorage.getItem(END_REASON_KEY);
  sessionStorage.removeItem(END_REASON_KEY);
  return reason;
}

/** An error from the server's problem document (RFC 9457). */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || `The server returned ${status} without a reason.`);
    this.status = status;
    this.fields = Array.isArray(body.errors) ? body.errors : [];
    this.requestId = body.request_id ?? null;
  }
}

/** Sends one request and returns the raw response; throws a `Problem` unless it is 2xx. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const allHeaders = { Accept: "application/json", ...headers };
  if (session) allHeaders.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) allHeaders["Content-Type"] = "application/json";
  const sentSession = session;
  let response;
  try {
    response = await fetch(BASE + path, { method, headers: allHeaders, body: body && JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server is unreachable. Check that it is running, then try again." });
  }
  if (response.ok) return response;
  const problem = new Problem(response.status, await response.json().catch(() => ({})));
  if (response.status === 401 && sentSession && sentSession === session) {
    sessionEnd("Your session is no longer valid. Sign in again.");
  }
  throw problem;
}

/** Sends one request and returns the response's JSON, or null if the body is empty. */
export async function call(method, path, body, headers) {
  const response = await send(method, path, { body, headers });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** Reads a list page by page, up to about `limit` items. */
export async function list(path, limit = 5000) {
  const items = [];
  let after = null;
  do {
    const query = new URLSearchParams({ limit: 500, ...(after && { after }) });
    const page = await call("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`);
    items.push(...page.items);
    after = page.next;
  } while (after && items.length < limit);
  return { items, more: Boolean(after) };
}

/**
 * Returns a create function for one form: a repeat after a lost response carries the same
 * idempotency key, so that nothing is created twice.
 */
export function creator(path) {
  let key = null;
  return async (body) => {
    key ??= randomKey();
    try {
      const created = await call("POST", path, body, { "Idempotency-Key": key });
      key = null;
      return created;
    } catch (problem) {
      if (problem.status) key = null;
      throw problem;
    }
  };
}

function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
