// The page of the API documents: chooses one, lists its operations, searches them.

import { h, put } from "../dom.js";
import { method, operationNode, operations } from "./operation.js";
import { plain, prose } from "./text.js";
import { setToken, token } from "./try.js";

const DOCUMENTS = [["platform", "Platform"], ["kargo", "Kargo"]];
const root = document.getElementById("app");

async function load(name) {
  const response = await fetch(`/docs/${name}.json`);
  if (!response.ok) throw new Error(`The server answered ${response.status} for /docs/${name}.json.`);
  return response.json();
}

/** The document that the address asks for; a link to an operation finds the one that has it. */
async function choose() {
  const asked = new URLSearchParams(location.search).get("api");
  const names = DOCUMENTS.map(([name]) => name);
  const first = names.includes(asked) ? asked : names[0];
  const wanted = decodeURIComponent(location.hash.slice(1));
  for (const name of asked || !wanted ? [first] : names) {
    const doc = await load(name);
    if (!wanted || asked || operations(doc).some((one) => one.id === wanted)) return [name, doc];
  }
  return [first, await load(first)];
}

function groups(doc, all) {
  const named = (doc.tags ?? []).map((tag) => tag.name);
  const tags = [...new Set([...named, ...all.map((one) => one.tag)])];
  return tags.map((tag) => ({ tag, description: doc.tags?.find((one) => one.name === tag)?.description, members: all.filter((one) => one.tag === tag) })).filter((group) => group.members.length);
}

function page(name, doc) {
  const all = operations(doc);
  const sections = groups(doc, all).map(({ tag, description, members }) => ({
    link: h("li", {}, h("h3", {}, tag), h("ul", {}, members.map((one) => navigation(one)))),
    node: h("section", { class: "group" }, h("h2", {}, tag), h("div", { class: "prose" }, prose(description)), members.map((one) => operationNode(doc, one))),
    members,
  }));
  const none = h("p", { class: "loading", hidden: true, role: "status" }, "No operation matches.");
  const search = h("input", { type: "search", placeholder: "Search operations", "aria-label": "Search operations", oninput: filter });

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const { link, node, members } of sections) {
      const shown = members.map((one) => words.every((word) => [one.summary, one.path, one.method, one.id, one.tag, one.description].join(" ").toLowerCase().includes(word)));
      shown.forEach((yes, at) => {
        link.querySelectorAll("li")[at].hidden = !yes;
        node.querySelectorAll(".operation")[at].hidden = !yes;
      });
      link.hidden = node.hidden = !shown.includes(true);
      hits += shown.filter(Boolean).length;
    }
    none.hidden = hits > 0;
    put(title, hits === all.length ? `All ${hits} operations` : `${hits} of ${all.length} operations`);
  }

  // On a narrow page the list is folded below its title; a chosen operation folds it again.
  const title = h("summary");
  const links = h("details", { onclick: (event) => event.target.closest("a") && fold() }, title, h("ul", {}, sections.map(({ link }) => link)));
  const narrow = matchMedia("(max-width: 900px)");
  const fold = () => (links.open = !narrow.matches);
  narrow.addEventListener("change", fold);
  fold();
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

function navigation(one) {
  return h("li", {}, h("a", { href: `#${one.id}`, "data-operation": one.id, class: one.deprecated && "deprecated" }, method(one.method), h("span", {}, plain(one.summary ?? one.path))));
}

function intro(name, doc) {
  return h("header", { class: "intro" },
    h("h1", {}, doc.info?.title ?? name),
    h("p", { class: "hint" }, doc.info?.version && `Version ${doc.info.version} · `, `OpenAPI ${doc.openapi} · `, h("a", { href: `/docs/${name}.json` }, `${name}.json`)),
    h("div", { class: "prose" }, prose(doc.info?.description)),
    h("div", { class: "panel token" },
      h("label", { for: "token" }, "Token for “Try it”"),
      h("input", { id: "token", type: "password", autocomplete: "off", value: token(), placeholder: "Paste one, or sign in to the console in this tab", oninput: (event) => setToken(event.target.value) }),
      h("p", { class: "hint" }, "It stays in this tab and is sent to this server alone.")));
}

function mark() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  for (const link of document.querySelectorAll("[data-operation]")) {
    if (link.dataset.operation === wanted) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".operation.target")?.classList.remove("target");
  const found = wanted && document.getElementById(wanted);
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
  put(root, h("div", { class: "empty bad", role: "alert" }, h("h1", {}, "The document could not be loaded"), h("p", {}, error.message)));
}
