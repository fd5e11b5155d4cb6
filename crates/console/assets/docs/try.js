// Sends requests of an operation from the page.

import { h, put } from "../dom.js";
import { field } from "../form.js";
import { bodyExample, snippet } from "./operation.js";
import { typeText } from "./schema.js";

const TOKEN = "paddock.docs.token";
const STREAM_MS = 5000;

/** The token to send: the one entered here, else that of the console in this tab. */
export function token() {
  const session = JSON.parse(sessionStorage.getItem("paddock.session") ?? "null");
  return sessionStorage.getItem(TOKEN) ?? session?.token ?? "";
}

/** Stores a token for the lifetime of this tab. */
export function setToken(text) {
  sessionStorage.setItem(TOKEN, text.trim());
}

/** A collapsed form, built when opened. */
export function tryIt(doc, operation) {
  const node = h("details", { class: "try" }, h("summary", {}, "Try it"));
  node.addEventListener("toggle", () => node.append(tryForm(doc, operation)), { once: true });
  return node;
}

function tryForm(doc, operation) {
  const inputs = operation.parameters.filter((parameter) => parameter.in !== "cookie")
    .map((parameter) => field({ name: `${parameter.in}:${parameter.name}`, label: parameter.name, required: parameter.required, placeholder: typeText(doc, parameter.schema), autocomplete: "off", spellcheck: "false" }));
  const text = bodyExample(doc, operation);
  const result = h("div", { class: "result", "aria-live": "polite" });
  const button = h("button", { class: "primary" }, "Send");
  const form = h("form", {}, inputs, text !== null && field({ name: "body", label: "Body", as: "textarea", required: true, rows: Math.min(text.split("\n").length + 1, 18), spellcheck: "false", value: text }), h("div", { class: "actions" }, button), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    put(result, h("p", { class: "loading" }, "Sending…"));
    try {
      put(result, await run(operation, Object.fromEntries(new FormData(form))));
    } catch (error) {
      put(result, h("p", { class: "alert" }, `Sending the request failed: ${error.message}`));
    }
    button.disabled = false;
  });
  return form;
}

async function run(operation, values) {
  const parameters = (place) => operation.parameters.filter((parameter) => parameter.in === place).map((parameter) => [parameter.name, values[`${place}:${parameter.name}`]]).filter(([, value]) => value !== "");
  const path = parameters("path").reduce((at, [name, value]) => at.replace(`{${name}}`, encodeURIComponent(value)), operation.path);
  const query = new URLSearchParams(parameters("query")).toString();
  const headers = new Headers(parameters("header"));
  if (token() && !headers.has("Authorization")) headers.set("Authorization", `Bearer ${token()}`);
  if (values.body !== undefined) headers.set("Content-Type", operation.media);
  const start = performance.now();
  const response = await fetch(path + (query && `?${query}`), { method: operation.method.toUpperCase(), headers, body: values.body, cache: "no-store" });
  const took = Math.round(performance.now() - start);
  const responseHeaders = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  return [
    h("p", { class: "result-head" }, h("b", { class: `code-${String(response.status)[0]}` }, `${response.status} ${response.statusText}`), h("span", { class: "hint" }, `${took} ms`)),
    snippet(pretty(await read(response)) || "No body."),
    h("details", {}, h("summary", {}, "Headers"), h("pre", {}, responseHeaders)),
  ];
}

/** The whole body, or the first seconds of a stream. */
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
