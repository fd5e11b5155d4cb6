// Sends an operation's request from the page.

import { h, put } from "../dom.js";
import { field } from "../form.js";
import { bodyExample, snippet } from "./operation.js";
import { typeText } from "./schema.js";

const TOKEN = "paddock.docs.token";
const STREAM_MS = 5000;

/** The token to send: the one given here, else the console's of this tab. */
export function token() {
  const session = JSON.parse(sessionStorage.getItem("paddock.session") ?? "null");
  return sessionStorage.getItem(TOKEN) ?? session?.token ?? "";
}

/** Remembers a token for as long as this tab lives. */
export function setToken(text) {
  sessionStorage.setItem(TOKEN, text.trim());
}

/** A folded form, built when it is opened. */
export function tryIt(doc, operation) {
  const node = h("details", { class: "try" }, h("summary", {}, "Try it"));
  node.addEventListener("toggle", () => node.append(tryForm(doc, operation)), { once: true });
  return node;
}

function tryForm(doc, operation) {
  const inputs = operation.parameters.filter((one) => one.in !== "cookie")
    .map((one) => field({ name: `${one.in}:${one.name}`, label: one.name, required: one.required, placeholder: typeText(doc, one.schema), autocomplete: "off", spellcheck: "false" }));
  const text = bodyExample(doc, operation);
  const answer = h("div", { class: "result", "aria-live": "polite" });
  const button = h("button", { class: "primary" }, "Send");
  const form = h("form", {}, inputs, text !== null && field({ name: "body", label: "Body", as: "textarea", required: true, rows: Math.min(text.split("\n").length + 1, 18), spellcheck: "false", value: text }), h("div", { class: "actions" }, button), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    put(answer, h("p", { class: "loading" }, "Sending…"));
    try {
      put(answer, await run(operation, Object.fromEntries(new FormData(form))));
    } catch (error) {
      put(answer, h("p", { class: "alert" }, `The request could not be sent: ${error.message}`));
    }
    button.disabled = false;
  });
  return form;
}

async function run(operation, values) {
  const given = (place) => operation.parameters.filter((one) => one.in === place).map((one) => [one.name, values[`${place}:${one.name}`]]).filter(([, value]) => value !== "");
  const path = given("path").reduce((at, [name, value]) => at.replace(`{${name}}`, encodeURIComponent(value)), operation.path);
  const query = new URLSearchParams(given("query")).toString();
  const headers = new Headers(given("header"));
  if (token() && !headers.has("Authorization")) headers.set("Authorization", `Bearer ${token()}`);
  if (values.body !== undefined) headers.set("Content-Type", operation.media);
  const start = performance.now();
  const response = await fetch(path + (query && `?${query}`), { method: operation.method.toUpperCase(), headers, body: values.body, cache: "no-store" });
  const took = Math.round(performance.now() - start);
  const kept = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return [
    h("p", { class: "result-head" }, h("b", { class: `code-${String(response.status)[0]}` }, `${response.status} ${response.statusText}`), h("span", { class: "hint" }, `${took} ms`)),
    snippet(pretty(await read(response)) || "No body."),
    h("details", {}, h("summary", {}, "Headers"), h("pre", {}, kept)),
  ];
}

/** The whole body, or what a stream says in its first seconds. */
async function read(response) {
  if (!response.headers.get("Content-Type")?.includes("event-stream")) return response.text();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  setTimeout(() => reader.cancel().catch(() => {}), STREAM_MS);
  let text = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  return text;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
