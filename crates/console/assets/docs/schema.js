// Reads JSON schemas of an OpenAPI 3.1 document: references, type names, examples, a tree of fields.

import { h } from "../dom.js";
import { spans } from "./text.js";

const MAX_DEPTH = 8;

/** Resolves `$ref` within the document; sibling keys of a reference override it. */
export function resolve(doc, node) {
  let found = node ?? {};
  for (let hops = 0; found.$ref && hops < MAX_DEPTH; hops++) {
    const { $ref, ...siblings } = found;
    const target = $ref.replace(/^#\//, "").split("/").map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
    found = { title: target.at(-1), ...target.reduce((at, key) => at?.[key], doc), ...siblings };
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

/** The schema without its null alternative. */
function nonNull(doc, node) {
  const schema = resolve(doc, node);
  const real = choices(schema)?.filter((choice) => !isNull(choice));
  return real?.length === 1 ? { ...resolve(doc, real[0]), ...(schema.description && { description: schema.description }) } : schema;
}

/** A schema's type as text: `array of Cluster`, `string (date-time) or null`. */
export function typeText(doc, node) {
  const schema = resolve(doc, node);
  if (choices(schema)) return [...new Set(choices(schema).map((choice) => typeText(doc, choice)))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const names = types(schema).map((type) => {
    if (type === "array") return `array of ${typeText(doc, schema.items)}`;
    if (type !== "object") return schema.format ? `${type} (${schema.format})` : type;
    if (schema.properties) return schema.title ?? "object";
    return schema.additionalProperties?.type || schema.additionalProperties?.$ref ? `map of ${typeText(doc, schema.additionalProperties)}` : "object";
  });
  return names.join(" or ") || "any";
}

const SAMPLES = {
  "date-time": "2026-01-31T12:00:00Z", date: "2026-01-31", uuid: "7b0c2d8e-1f4a-4c39-9d55-0a6e2b7f3c11",
  uri: "https://example.com", email: "mira@example.com", password: "a long password", int32: 1, int64: 1,
};

/** A value that matches the schema: the document's example, else one generated from the types. */
export function example(doc, node, depth = 0) {
  const schema = nonNull(doc, node);
  const given = [schema.example, schema.examples?.[0], schema.const, schema.default, schema.enum?.[0]].find((value) => value !== undefined && value !== null);
  if (given !== undefined) return given;
  const real = choices(schema)?.find((choice) => !isNull(choice));
  if (real) return example(doc, real, depth + 1);
  switch (types(schema).find((type) => type !== "null")) {
    case "object": return depth > MAX_DEPTH ? {} : objectExample(doc, schema, depth);
    case "array": return depth > MAX_DEPTH || !schema.items ? [] : [example(doc, schema.items, depth + 1)];
    case "integer": case "number": return schema.minimum ?? 1;
    case "boolean": return true;
    case "string": return SAMPLES[schema.format] ?? "text";
    default: return null;
  }
}

function objectExample(doc, schema, depth) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [name, example(doc, field, depth + 1)]);
  const extra = schema.additionalProperties;
  if (!fields.length && extra && typeof extra === "object") fields.push(["key", example(doc, extra, depth + 1)]);
  return Object.fromEntries(fields);
}

/** The constraints on a value. */
function constraintText(schema) {
  const constraints = [
    schema.enum && `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`,
    schema.default !== undefined && schema.default !== null && `default ${JSON.stringify(schema.default)}`,
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
    schema.minLength !== undefined && `at least ${schema.minLength} characters`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.maxItems !== undefined && `at most ${schema.maxItems} items`,
    schema.pattern && `matches ${schema.pattern}`,
  ];
  return constraints.filter(Boolean).join("; ");
}

/** One field with type and description; nested fields are collapsed. */
export function property(doc, name, node, required, note) {
  const schema = nonNull(doc, node);
  const below = schema.items ? nonNull(doc, schema.items) : schema;
  const deep = below.properties ? below : typeof schema.additionalProperties === "object" ? nonNull(doc, schema.additionalProperties) : null;
  const item = h("li", {},
    h("div", { class: "prop" }, h("code", { class: "prop-name" }, name), h("span", { class: "prop-type" }, typeText(doc, node)), required && h("span", { class: "required" }, "required"), note && h("span", { class: "tag" }, note)),
    (node.description ?? schema.description) && h("p", { class: "prop-text" }, spans(node.description ?? schema.description)),
    constraintText(schema) && h("p", { class: "prop-text faint" }, constraintText(schema)));
  if (deep?.properties) item.append(nested(doc, deep));
  return item;
}

/** Nested fields, built when opened: schemas may be recursive. */
function nested(doc, schema) {
  const node = h("details", {}, h("summary", {}, schema.title ? `Fields of ${schema.title}` : "Fields"));
  node.addEventListener("toggle", () => node.append(tree(doc, schema)), { once: true });
  return node;
}

/** The fields of a schema. */
export function tree(doc, node) {
  let schema = nonNull(doc, node);
  if (schema.items) schema = nonNull(doc, schema.items);
  const fields = Object.entries(schema.properties ?? {});
  if (!fields.length) return h("p", { class: "prop-text" }, typeText(doc, node), schema.description && [": ", spans(schema.description)]);
  return h("ul", { class: "props" }, fields.map(([name, field]) => property(doc, name, field, schema.required?.includes(name))));
}
