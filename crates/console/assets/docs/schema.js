// Reads JSON schemas of an OpenAPI 3.1 document: references, types in words, examples, a tree to look at.

import { h } from "../dom.js";
import { spans } from "./text.js";

const DEEPEST = 8;

/** Follows `$ref` inside the document; what is given beside a reference wins over it. */
export function resolve(doc, node) {
  let found = node ?? {};
  for (let hops = 0; found.$ref && hops < DEEPEST; hops++) {
    const { $ref, ...beside } = found;
    const target = $ref.replace(/^#\//, "").split("/").map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
    found = { title: target.at(-1), ...target.reduce((at, key) => at?.[key], doc), ...beside };
  }
  return found.allOf ? merge(doc, found) : found;
}

function merge(doc, { allOf, ...own }) {
  const parts = [...allOf.map((part) => resolve(doc, part)), own];
  return Object.assign({}, ...parts, {
    title: own.title ?? parts.find((part) => part.title)?.title,
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: parts.flatMap((part) => part.required ?? []),
  });
}

const types = (schema) => [schema.type ?? (schema.properties ? "object" : [])].flat();
const choices = (schema) => schema.oneOf ?? schema.anyOf;
const isNull = (schema) => types(schema).length === 1 && types(schema)[0] === "null";

/** The one schema that matters when the others only allow null. */
function solid(doc, node) {
  const schema = resolve(doc, node);
  const real = choices(schema)?.filter((one) => !isNull(one));
  return real?.length === 1 ? { ...resolve(doc, real[0]), ...(schema.description && { description: schema.description }) } : schema;
}

/** A schema's type in a few words: `array of Cluster`, `string (date-time) or null`. */
export function typeText(doc, node) {
  const schema = resolve(doc, node);
  if (choices(schema)) return [...new Set(choices(schema).map((one) => typeText(doc, one)))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const words = types(schema).map((type) => {
    if (type === "array") return `array of ${typeText(doc, schema.items)}`;
    if (type !== "object") return schema.format ? `${type} (${schema.format})` : type;
    if (schema.properties) return schema.title ?? "object";
    return schema.additionalProperties?.type || schema.additionalProperties?.$ref ? `map of ${typeText(doc, schema.additionalProperties)}` : "object";
  });
  return words.join(" or ") || "any";
}

const SAMPLES = {
  "date-time": "2026-01-31T12:00:00Z", date: "2026-01-31", uuid: "7b0c2d8e-1f4a-4c39-9d55-0a6e2b7f3c11",
  uri: "https://example.com", email: "mira@example.com", password: "a long password", int32: 1, int64: 1,
};

/** A value that fits the schema: what the document offers, else one made from the types. */
export function example(doc, node, depth = 0) {
  const schema = solid(doc, node);
  const given = [schema.example, schema.examples?.[0], schema.const, schema.default, schema.enum?.[0]].find((value) => value !== undefined && value !== null);
  if (given !== undefined) return given;
  const real = choices(schema)?.find((one) => !isNull(one));
  if (real) return example(doc, real, depth + 1);
  switch (types(schema).find((type) => type !== "null")) {
    case "object": return depth > DEEPEST ? {} : objectExample(doc, schema, depth);
    case "array": return depth > DEEPEST || !schema.items ? [] : [example(doc, schema.items, depth + 1)];
    case "integer": case "number": return schema.minimum ?? 1;
    case "boolean": return true;
    case "string": return SAMPLES[schema.format] ?? "text";
    default: return null;
  }
}

function objectExample(doc, schema, depth) {
  const made = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, example(doc, one, depth + 1)]);
  const extra = schema.additionalProperties;
  if (!made.length && extra && typeof extra === "object") made.push(["key", example(doc, extra, depth + 1)]);
  return Object.fromEntries(made);
}

/** What a value must keep to. */
function limits(schema) {
  const said = [
    schema.enum && `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`,
    schema.default !== undefined && schema.default !== null && `default ${JSON.stringify(schema.default)}`,
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
    schema.minLength !== undefined && `at least ${schema.minLength} characters`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.maxItems !== undefined && `at most ${schema.maxItems} items`,
    schema.pattern && `matches ${schema.pattern}`,
  ];
  return said.filter(Boolean).join("; ");
}

/** One name with its type and meaning; `inside` is shown below, folded until asked for. */
export function property(doc, name, node, required, note) {
  const schema = solid(doc, node);
  const below = schema.items ? solid(doc, schema.items) : schema;
  const deep = below.properties ? below : typeof schema.additionalProperties === "object" ? solid(doc, schema.additionalProperties) : null;
  const item = h("li", {},
    h("div", { class: "prop" }, h("code", { class: "prop-name" }, name), h("span", { class: "prop-type" }, typeText(doc, node)), required && h("span", { class: "required" }, "required"), note && h("span", { class: "tag" }, note)),
    (node.description ?? schema.description) && h("p", { class: "prop-text" }, spans(node.description ?? schema.description)),
    limits(schema) && h("p", { class: "prop-text faint" }, limits(schema)));
  if (deep?.properties) item.append(folded(doc, deep));
  return item;
}

/** Built when it is opened: schemas may hold themselves. */
function folded(doc, schema) {
  const node = h("details", {}, h("summary", {}, schema.title ? `Fields of ${schema.title}` : "Fields"));
  node.addEventListener("toggle", () => node.append(tree(doc, schema)), { once: true });
  return node;
}

/** The fields of a schema. */
export function tree(doc, node) {
  let schema = solid(doc, node);
  if (schema.items) schema = solid(doc, schema.items);
  const fields = Object.entries(schema.properties ?? {});
  if (!fields.length) return h("p", { class: "prop-text" }, typeText(doc, node), schema.description && [": ", spans(schema.description)]);
  return h("ul", { class: "props" }, fields.map(([name, one]) => property(doc, name, one, schema.required?.includes(name))));
}
