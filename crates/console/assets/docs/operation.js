// One API operation: parameters, body, responses, and a curl example.

import { copyButton, h } from "../dom.js";
import { example, property, resolve, tree, typeText } from "./schema.js";
import { plain, prose, spans } from "./text.js";
import { tryIt } from "./try.js";

const METHODS = ["get", "put", "post", "patch", "delete", "head", "options"];

/** All operations of a document, including what they inherit from path and document. */
export function operations(doc) {
  return Object.entries(doc.paths ?? {}).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => {
    const own = item[method];
    const body = own.requestBody && resolve(doc, own.requestBody);
    const security = own.security ?? doc.security ?? [];
    return {
      ...own, path, method, body,
      id: own.operationId ?? `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`,
      tag: own.tags?.[0] ?? "other",
      parameters: [...(item.parameters ?? []), ...(own.parameters ?? [])].map((parameter) => resolve(doc, parameter)),
      media: body && (Object.keys(body.content ?? {}).find((type) => type.includes("json")) ?? Object.keys(body.content ?? {})[0]),
      open: security.length === 0 || security.some((scheme) => Object.keys(scheme).length === 0),
    };
  }));
}

/** The HTTP method, coloured. */
export function method(name) {
  return h("span", { class: `method ${name}` }, name.toUpperCase());
}

/** The document's example body as text; null without a body. */
export function bodyExample(doc, operation) {
  const media = operation.body?.content?.[operation.media];
  if (!media) return null;
  const named = Object.values(media.examples ?? {})[0];
  return JSON.stringify(media.example ?? resolve(doc, named).value ?? example(doc, media.schema), null, 2);
}

/** The article of one operation. */
export function operationNode(doc, operation) {
  return h("article", { class: `operation${operation.deprecated ? " deprecated" : ""}`, id: operation.id },
    h("header", {},
      h("h3", {}, h("a", { href: `#${operation.id}`, title: "Link to this operation" }, plain(operation.summary ?? operation.id))),
      h("p", { class: "route" }, method(operation.method), h("code", {}, operation.path), operation.open && h("span", { class: "tag" }, "no authentication"), operation.deprecated && h("span", { class: "tag" }, "deprecated"))),
    h("div", { class: "prose" }, prose(operation.description)),
    operation.parameters.length > 0 && part("Parameters", h("ul", { class: "props" }, operation.parameters.map((parameter) =>
      property(doc, parameter.name, { ...parameter.schema, description: parameter.description ?? parameter.schema?.description }, parameter.required, parameter.in)))),
    operation.body && part("Body", requestBody(doc, operation), operation.media),
    part("Responses", h("div", { class: "responses" }, Object.entries(operation.responses ?? {}).map(([status, node]) => responseNode(doc, status, resolve(doc, node))))),
    part("Example", curl(doc, operation)),
    tryIt(doc, operation));
}

function part(title, content, note) {
  return h("section", { class: "part" }, h("h4", {}, title, note && h("span", { class: "number" }, note)), content);
}

function requestBody(doc, operation) {
  const text = bodyExample(doc, operation);
  return h("div", { class: "split" }, tree(doc, operation.body.content[operation.media].schema), snippet(text));
}

function responseNode(doc, status, response) {
  const types = Object.keys(response.content ?? {});
  const media = types.find((type) => type.includes("json")) ?? types[0];
  const schema = response.content?.[media]?.schema;
  const title = [h("span", { class: `code-${status[0]}` }, status), " ", response.description ? spans(response.description) : "No body."];
  if (!schema) return h("p", { class: "response" }, title);
  const node = h("details", { class: "response" }, h("summary", {}, title, h("span", { class: "prop-type" }, typeText(doc, schema))));
  node.addEventListener("toggle", () => {
    const shown = response.content[media].example ?? example(doc, schema);
    node.append(types.length > 1 && h("p", { class: "hint" }, types.join(", ")) || "", h("div", { class: "split" }, tree(doc, schema), snippet(typeof shown === "string" ? shown : JSON.stringify(shown, null, 2))));
  }, { once: true });
  return node;
}

/** A text with a copy button. */
export function snippet(text) {
  return h("div", { class: "snippet" }, h("pre", { tabindex: "0" }, text), copyButton(text));
}

function curl(doc, operation) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const query = operation.parameters.filter((parameter) => parameter.in === "query" && parameter.required).map((parameter) => `${parameter.name}=${encodeURIComponent(example(doc, parameter.schema))}`);
  const lines = [`curl${operation.method === "get" ? "" : ` -X ${operation.method.toUpperCase()}`} ${quote(location.origin + operation.path + (query.length ? `?${query.join("&")}` : ""))}`];
  if (!operation.open) lines.push('-H "Authorization: Bearer $TOKEN"');
  if (operation.body) lines.push(`-H ${quote(`Content-Type: ${operation.media}`)}`, `-d ${quote(JSON.stringify(JSON.parse(bodyExample(doc, operation) ?? "{}")))}`);
  return snippet(lines.join(" \\\n  "));
}
