// Forms whose controls have the API's field names, so that server errors can be shown at their field.

import { h, icon, put } from "./dom.js";

let serial = 0;

/** A labelled control: `input`, or `textarea`/`select` by `as`. `name` is the field's name in the API. */
export function field({ name, label, hint, as = "input", options, ...rest }) {
  const id = `f${++serial}`;
  const control = h(as, { id, name, "aria-describedby": `${id}-hint ${id}-error`, ...rest });
  if (options) for (const [value, text] of options) control.append(h("option", { value, selected: value === rest.value }, text));
  return h("div", { class: "field", "data-field": name },
    h("label", { for: id }, label, !rest.required && as !== "select" && h("span", { class: "optional" }, "optional")),
    control,
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
    h("p", { class: "error", id: `${id}-error` }));
}

/**
 * A form that calls `send(values)` with the controls' values by name. Field errors are shown at
 * their field, the rest of a problem above the buttons.
 */
export function form({ fields, action, send, cancel, danger }) {
  const alert = h("p", { class: "alert", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const node = h("form", { novalidate: true, autocomplete: "on" }, fields, alert,
    h("div", { class: "actions" }, cancel && h("button", { type: "button", class: "plain", onclick: cancel }, "Cancel"), button));
  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    clear(node, alert);
    if (button.disabled || !complete(node)) return;
    button.disabled = true;
    node.setAttribute("aria-busy", "true");
    try {
      await send(Object.fromEntries(new FormData(node)), node);
    } catch (problem) {
      show(node, alert, problem);
    } finally {
      button.disabled = false;
      node.removeAttribute("aria-busy");
    }
  });
  return node;
}

function clear(node, alert) {
  alert.hidden = true;
  for (const error of node.querySelectorAll(".error")) put(error);
  for (const control of node.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

function complete(node) {
  const empty = [...node.querySelectorAll("[required]")].filter((control) => !control.value.trim());
  for (const control of empty) mark(control.closest(".field"), "This field is required.");
  empty[0]?.focus();
  return empty.length === 0;
}

function show(node, alert, problem) {
  const unplaced = problem.fields?.filter(({ field, detail }) => !mark(findField(node, String(field)), detail)) ?? [];
  const rest = unplaced.map(({ field, detail }) => `${field}: ${detail}`);
  put(alert, [problem.message, ...rest].join(" "), problem.status >= 500 && problem.requestId && ` (request ${problem.requestId})`);
  alert.hidden = false;
  node.querySelector("[aria-invalid]")?.focus();
}

/** Finds the field `name` or its closest ancestor: `env.PORT` is shown at `env`. */
function findField(node, name) {
  const path = name.replace(/^\//, "").split(/[./[\]]+/).filter(Boolean);
  for (; path.length; path.pop()) {
    const found = node.querySelector(`[data-field="${CSS.escape(path.join("."))}"]`);
    if (found) return found;
  }
  return null;
}

function mark(found, text) {
  if (!found) return false;
  put(found.querySelector(".error"), text);
  (found.querySelector(".amount") ?? found.querySelector("input, select, textarea"))?.setAttribute("aria-invalid", "true");
  const folded = found.closest("details");
  if (folded) folded.open = true;
  return true;
}

/** Rows of resource type and amount; `values()` returns `{cpu: "1", …}`. */
export function amounts(name, label, start) {
  const rows = h("div", { class: "amounts" });
  const add = (kind = "", amount = "", fixed = false) => {
    const type = h("input", { value: kind, readonly: fixed, placeholder: "type", "aria-label": "Resource type", autocapitalize: "off", spellcheck: "false", class: "kind" });
    const value = h("input", { value: amount, "aria-label": `Amount of ${kind || "the resource"}`, placeholder: kind === "ram" ? "512Mi" : "1", spellcheck: "false", class: "amount" });
    const row = h("div", { class: "field amount-row", "data-field": `${name}.${kind}` }, type, value,
      h("button", { type: "button", class: "quiet", "aria-label": `Remove ${kind || "this type"}`, onclick: () => row.remove() }, icon("close")),
      h("p", { class: "error" }));
    type.addEventListener("input", () => (row.dataset.field = `${name}.${type.value.trim()}`));
    rows.append(row);
    return type;
  };
  for (const [kind, amount] of start) add(kind, amount, true);
  const node = h("fieldset", { class: "field", "data-field": name },
    h("legend", {}, label), rows,
    h("button", { type: "button", class: "plain small", onclick: () => add().focus() }, icon("plus"), "Add type"),
    h("p", { class: "hint" }, "A number, optionally with a unit: 500m, 4Gi. Any resource type of the cluster, such as gpu."),
    h("p", { class: "error" }));
  const values = () => Object.fromEntries([...rows.children]
    .map((row) => [row.querySelector(".kind").value.trim(), row.querySelector(".amount").value.trim()])
    .filter(([kind, amount]) => kind && amount));
  return { node, values };
}

/** Opens a modal dialog; `build(close)` returns its content. */
export function dialog(title, build) {
  const id = `d${++serial}`;
  const node = h("dialog", { "aria-labelledby": id });
  const close = () => node.close();
  node.append(
    h("header", {}, h("h2", { id }, title), h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: close }, icon("close"))),
    h("div", { class: "dialog-body" }, build(close)));
  node.addEventListener("close", () => node.remove());
  document.body.append(node);
  node.showModal();
  node.querySelector(".dialog-body :is(input, select, textarea, button.primary)")?.focus();
  return node;
}

/** Asks for confirmation of a destructive action. With `typed`, the user has to type that name. */
export function confirm({ title, text, action, typed, send }) {
  dialog(title, (close) => {
    const fields = [h("p", {}, text)];
    if (typed) fields.push(field({ name: "typed", label: `Type ${typed} to confirm`, required: true, autocomplete: "off", spellcheck: "false" }));
    return form({
      fields, action, danger: true, cancel: close,
      async send(values) {
        if (typed && values.typed.trim() !== typed) throw Object.assign(new Error("The name does not match."), { fields: [{ field: "typed", detail: `Type ${typed}.` }] });
        await send();
        close();
      },
    });
  });
}
