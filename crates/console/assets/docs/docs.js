// The API documentation page: selects a document, lists and searches its operations.

import { h, put } from "../dom.js";
import { method, operationNode, operations } from "./operation.js";
import { plain, prose } from "./text.js";
import { setToken, token } from "./try.js";

const DOCUMENTS = [["platform", "Platform"], ["kargo", "Kargo"]];
const root = document.getElementById("app");

async function load(name) {
  const response = await fetch(`/docs/${name}.json`);
  if (!response.ok) throw new Error(`The server returned ${response.status} for /docs/${name}.json.`);
  return response.json();
}

/** The document selected by the URL; a link to an operation selects the document that contains it. */
async function choose() {
  const requested = new URLSearchParams(location.search).get("api");
  const names = DOCUMENTS.map(([name]) => name);
  const first = names.includes(requested) ? requested : names[0];
  const operationId = decodeURIComponent(location.hash.slice(1));
  for (const name of requested || !operationId ? [first] : names) {
    const doc = await load(name);
    if (!operationId || requested || operations(doc).some((operation) => operation.id === operationId)) return [name, doc];
  }
  return [first, await load(first)];
}

function groups(doc, all) {
  const named = (doc.tags ?? []).map((tag) => tag.name);
  const tags = [...new Set([...named, ...all.map((operation) => operation.tag)])];
  return tags.map((tag) => ({ tag, description: doc.tags?.find(({ name }) => name === tag)?.description, members: all.filter((operation) => operation.tag === tag) })).filter((group) => group.members.length);
}

function page(name, doc) {
  const all = operations(doc);
  const sections = groups(doc, all).map(({ tag, description, members }) => ({
    link: h("li", {}, h("h3", {}, tag), h("ul", {}, members.map((operation) => navigation(operation)))),
    node: h("section", { class: "group" }, h("h2", {}, tag), h("div", { class: "prose" }, prose(description)), members.map((operation) => operationNode(doc, operation))),
    members,
  }));
  const none = h("p", { class: "loading", hidden: true, role: "status" }, "No operation matches.");
  const search = h("input", { type: "search", placeholder: "Search operations", "aria-label": "Search operations", oninput: filter });

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const { link, node, members } of sections) {
      const shown = members.map((operation) => words.every((word) => [operation.summary, operation.path, operation.method, operation.id, operation.tag, operation.description].join(" ").toLowerCase().includes(word)));
      shown.forEach((isShown, at) => {
        link.querySelectorAll("li")[at].hidden = !isShown;
        node.querySelectorAll(".operation")[at].hidden = !isShown;
      });
      link.hidden = node.hidden = !shown.includes(true);
      hits += shown.filter(Boolean).length;
    }
    none.hidden = hits > 0;
    put(title, hits === all.length ? `All ${hits} operations` : `${hits} of ${all.length} operations`);
  }

  // On a narrow page the list is collapsed below its title; selecting an operation collapses it again.
  const title = h("summary");
  const links = h("details", { onclick: (event) => event.target.closest("a") && collapse() }, title, h("ul", {}, sections.map(({ link }) => link)));
  const narrow = matchMedia("(max-width: 900px)");
  const collapse = () => (links.open = !narrow.matches);
  narrow.addEventListener("change", collapse);
  collapse();
  filter();

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    search.focus();
  });
  return h("div", { class: "docs" },
    h("div", { class: "docs-side" },
      h("a", { class: "brand", href: "/" }, h("img", { src: "/assets/icon.svg", alt: "", width: 28, height: 28 }), "Paddock API"),
      h("div", { class: "switch", role: "group", "aria-label": "Document" }, DOCUMENTS.map(([other, label]) => h("a", { href: `/docs?api=${other}`, "aria-current": other === name && "page" }, label))),
      search,
      h("nav", { "aria-label": "Operations" }, links)),
    h("main", {}, intro(name, doc), none, sections.map(({ node }) => node)));
}

function navigation(operation) {
  return h("li", {}, h("a", { href: `#${operation.id}`, "data-operation": operation.id, class: operation.deprecated && "deprecated" }, method(operation.method), h("span", {}, plain(operation.summary ?? operation.path))));
}

function intro(name, doc) {
  return h("header", { class: "intro" },
    h("h1", {}, doc.info?.title ?? name),
    h("p", { class: "hint" }, doc.info?.version && `Version ${doc.info.version} · `, `OpenAPI ${doc.openapi} · `, h("a", { href: `/docs/${name}.json` }, `${name}.json`)),
    h("div", { class: "prose" }, prose(doc.info?.description)),
    h("div", { class: "panel token" },
      h("label", { for: "token" }, "Token for “Try it”"),
      h("input", { id: "token", type: "password", autocomplete: "off", value: token(), placeholder: "Paste a token, or sign in to the console in this tab", oninput: (event) => setToken(event.target.value) }),
      h("p", { class: "hint" }, "Stored in this tab and sent only to this server.")));
}

function mark() {
  const operationId = decodeURIComponent(location.hash.slice(1));
  for (const link of document.querySelectorAll("[data-operation]")) {
    if (link.dataset.operation === operationId) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".operation.target")?.classList.remove("target");
  const found = operationId && document.getElementById(operationId);
  if (!found) return;
  found.classList.add("target");
  found.scrollIntoView();
}

try {
  const [name, doc] = await choose();
  document.title = `${doc.info?.title ?? "API"} · Paddock`;
  put(root, page(name, doc));
  mark();
  window.addEventListener("hashchange", mark);
} catch (error) {
  put(root, h("div", { class: "empty bad", role: "alert" }, h("h1", {}, "Loading the document failed"), h("p", {}, error.message)));
}
