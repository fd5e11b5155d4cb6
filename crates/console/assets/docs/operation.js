// One operation of the API: what it takes, what it gives, and how to call it.

import { copyButton, h } from "../dom.js";
import { example, property, resolve, tree, typeText } from "./schema.js";
import { plain, prose, spans } from "./text.js";
import { tryIt } from "./try.js";

const METHODS = ["get", "put", "post", "patch", "delete", "head", "options"];

/** All operations of a document, with everything that they inherit. */
export function operations(doc) {
  return Object.entries(doc.paths ?? {}).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => {
    const own = item[method];
    const body = own.requestBody && resolve(doc, own.requestBody);
    const security = own.security ?? doc.security ?? [];
    return {
      ...own, path, method, body,
      id: own.operationId ?? `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`,
      tag: own.tags?.[0] ?? "other",
      parameters: [...(item.parameters ?? []), ...(own.parameters ?? [])].map((one) => resolve(doc, one)),
      media: body && (Object.keys(body.content ?? {}).find((type) => type.includes("json")) ?? Object.keys(body.content ?? {})[0]),
      open: security.length === 0 || security.some((one) => Object.keys(one).length === 0),
    };
  }));
}

/** The method as a coloured word. */
export function method(name) {
  return h("span", { class: `method ${name}` }, name.toUpperCase());
}

/** The body that the document suggests, as text; null when there is none. */
export function bodyExample(doc, operation) {
  const media = operation.body?.content?.[operation.media];
  if (!media) return null;
  const named = Object.values(media.examples ?? {})[0];
  return JSON.stringify(media.example ?? resolve(doc, named).value ?? example(doc, media.schema), null, 2);
}

/** Everything about one operation. */
export function operationNode(doc, operation) {
  return h("article", { class: `operation${operation.deprecated ? " deprecated" : ""}`, id: operation.id },
    h("header", {},
      h("h3", {}, h("a", { href: `#${operation.id}`, title: "Link to this operation" }, plain(operation.summary ?? operation.id))),
      h("p", { class: "route" }, method(operation.method), h("code", {}, operation.path), operation.open && h("span", { class: "tag" }, "no token needed"), operation.deprecated && h("span", { class: "tag" }, "deprecated"))),
    h("div", { class: "prose" }, prose(operation.description)),
    operation.parameters.length > 0 && part("Parameters", h("ul", { class: "props" }, operation.parameters.map((one) =>
      property(doc, one.name, { ...one.schema, description: one.description ?? one.schema?.description }, one.required, one.in)))),
    operation.body && part("Body", requestBody(doc, operation), operation.media),
    part("Answers", h("div", { class: "answers" }, Object.entries(operation.responses ?? {}).map(([status, one]) => answer(doc, status, resolve(doc, one))))),
    part("Call it", curl(doc, operation)),
    tryIt(doc, operation));
}

function part(title, content, note) {
  return h("section", { class: "part" }, h("h4", {}, title, note && h("span", { class: "number" }, note)), content);
}

function requestBody(doc, operation) {
  const text = bodyExample(doc, operation);
  return h("div", { class: "beside" }, tree(doc, operation.body.content[operation.media].schema), snippet(text));
}

function answer(doc, status, one) {
  const types = Object.keys(one.content ?? {});
  const media = types.find((type) => type.includes("json")) ?? types[0];
  const schema = one.content?.[media]?.schema;
  const title = [h("span", { class: `code-${status[0]}` }, status), " ", one.description ? spans(one.description) : "No body."];
  if (!schema) return h("p", { class: "answer" }, title);
  const node = h("details", { class: "answer" }, h("summary", {}, title, h("span", { class: "prop-type" }, typeText(doc, schema))));
  node.addEventListener("toggle", () => {
    const shown = one.content[media].example ?? example(doc, schema);
    node.append(types.length > 1 && h("p", { class: "hint" }, types.join(", ")) || "", h("div", { class: "beside" }, tree(doc, schema), snippet(typeof shown === "string" ? shown : JSON.stringify(shown, null, 2))));
  }, { once: true });
  return node;
}

/** Text to copy. */
export function snippet(text) {
  return h("div", { class: "snippet" }, h("pre", { tabindex: "0" }, text), copyButton(text));
}

function curl(doc, operation) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const query = operation.parameters.filter((one) => one.in === "query" && one.required).map((one) => `${one.name}=${encodeURIComponent(example(doc, one.schema))}`);
  const lines = [`curl${operation.method === "get" ? "" : ` -X ${operation.method.toUpperCase()}`} ${quote(location.origin + operation.path + (query.length ? `?${query.join("&")}` : ""))}`];
  if (!operation.open) lines.push('-H "Authorization: Bearer $TOKEN"');
  if (operation.body) lines.push(`-H ${quote(`Content-Type: ${operation.media}`)}`, `-d ${quote(JSON.stringify(JSON.parse(bodyExample(doc, operation) ?? "{}")))}`);
  return snippet(lines.join(" \\\n  "));
}
