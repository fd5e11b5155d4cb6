// Builds and updates the DOM.
// Text always becomes a text node: data from the server can't become markup.

/** Creates an element: `on…` props are listeners, all others attributes; null and false are skipped. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  fill(node, children);
  return node;
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces the children of `node`. */
export function put(node, ...children) {
  node.replaceChildren();
  fill(node, children);
  return node;
}

/**
 * Renders `items` into `parent` and replaces only changed rows, so that focus, selection and
 * open details survive an update. `stamp` returns the data that a row depends on.
 */
export function keyed(parent, items, key, build, stamp = (item) => item) {
  const previous = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const id = String(key(item));
    const mark = JSON.stringify(stamp(item));
    let node = previous.get(id);
    previous.delete(id);
    if (!node || node.mark !== mark) {
      const fresh = build(item);
      fresh.dataset.key = id;
      fresh.mark = mark;
      if (node) {
        if (place === node) place = fresh;
        swap(node, fresh);
      }
      node = fresh;
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of previous.values()) node.remove();
}

/** Replaces `node` by `fresh` and keeps the keyboard focus. */
function swap(node, fresh) {
  const focusable = "a, button, input, select, summary";
  const at = [...node.querySelectorAll(focusable)].indexOf(document.activeElement);
  node.replaceWith(fresh);
  if (at >= 0) fresh.querySelectorAll(focusable)[at]?.focus();
}

const shapes = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z",
  clusters: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
  deployments: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  events: "M3 12h4l3 7 4-14 3 7h4",
  organization: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.3 2.7-6 6-6s6 2.7 6 6M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5c1.9 1 3 3 3 5.5",
  docs: "M5 4h9l5 5v11H5zM14 4v5h5M8.5 13h7M8.5 16.5h5",
  plus: "M12 5v14M5 12h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6L6 18",
  exit: "M14 4h5v16h-5M4 12h11M11 8l4 4-4 4",
};

/** A decorative line icon. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg.namespaceURI, "path");
  path.setAttribute("d", shapes[name]);
  svg.append(path);
  return svg;
}

/** Announces a change to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** Shows a short message that disappears after a few seconds. */
export function toast(text, tone = "calm") {
  const node = h("p", { class: `toast ${tone}` }, text);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), tone === "bad" ? 8000 : 4000);
}

/** Copies text, even without the clipboard API (plain HTTP to another host). */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const holder = h("textarea", { class: "visually-hidden", value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(holder);
    holder.select();
    document.execCommand("copy");
    holder.remove();
  }
  toast("Copied");
}

/** A button that copies `text`. */
export function copyButton(text, label = "Copy") {
  return h("button", { type: "button", class: "quiet small", "aria-label": label, title: label, onclick: () => copy(text) }, icon("copy"));
}
