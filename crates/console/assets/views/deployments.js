// All deployments with status, reason and priority.

import { h, keyed, put } from "../dom.js";
import { quantities, sentence } from "../format.js";
import { clusters, deployments as known } from "../live.js";
import { empty, failure, head, ownerTag, status, time } from "../parts.js";
import { owner } from "../people.js";
import { deploymentCreate } from "./deployment_form.js";

const PAGE = 100;
const WAITING = ["queued", "preempted"];
const GROUPS = ["all", "running", "waiting", "starting", "failed", "completed"];

export function deployments() {
  const asked = new URLSearchParams(location.hash.split("?")[1]).get("status");
  let group = GROUPS.includes(asked) ? asked : "all";
  let most = PAGE;
  const search = h("input", { type: "search", placeholder: "Filter by name, image, cluster or label", "aria-label": "Filter deployments", oninput: update });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Status" });
  const table = deploymentTable();
  const below = h("div", { class: "more" });
  const create = () => h("button", { class: "primary", "data-new": true, onclick: () => deploymentCreate() }, "New deployment");
  const node = h("div", {}, head("Deployments", { actions: create() }), h("div", { class: "filters" }, search, chips), table.node, below);

  function choose(next) {
    group = next;
    most = PAGE;
    history.replaceState(null, "", next === "all" ? "#/deployments" : `#/deployments?status=${next}`);
    update();
  }

  function update() {
    const { all } = known;
    keyed(chips, GROUPS.map((name) => ({ name, number: all.filter((one) => inGroup(one, name)).length, on: name === group })), (chip) => chip.name,
      (chip) => h("button", { class: "chip", "aria-pressed": String(chip.on), onclick: () => choose(chip.name) }, sentence(chip.name), h("span", { class: "number" }, chip.number)));
    const wanted = search.value.trim().toLowerCase();
    const found = all.filter((one) => inGroup(one, group) && (!wanted || text(one).includes(wanted))).sort((a, b) => b.created_at.localeCompare(a.created_at) || b.id.localeCompare(a.id));
    keyed(table.body, found.slice(0, most), (one) => one.id, deploymentRow, deploymentStamp);
    table.body.parentElement.hidden = !found.length;
    put(below, note(found));
  }

  function note(found) {
    if (!known.loaded) return known.problem ? failure(known.problem, () => known.load()) : h("p", { class: "loading" }, "Loading…");
    if (!known.all.length) return empty("No deployments yet", "Give an image and what it needs; Paddock finds a place for it.", create());
    if (!found.length) return empty("No deployment matches", "Choose another status or fewer letters.");
    if (found.length > most) return h("button", { class: "plain", onclick: () => ((most += PAGE), update()) }, `Show ${Math.min(PAGE, found.length - most)} more of ${found.length}`);
    return known.more && h("p", { class: "hint" }, `Only the first ${known.all.length} are shown here; the API has all of them.`);
  }

  return { title: "Deployments", node, update };
}

function inGroup(one, group) {
  if (group === "all") return true;
  if (group === "waiting") return WAITING.includes(one.status);
  if (group === "starting") return one.status === "scheduled" || one.status === "starting";
  return one.status === group;
}

function text(one) {
  return [one.name, one.image, one.id, one.status, owner(one), clusters.get(one.cluster_id)?.name, ...Object.entries(one.labels ?? {}).flat()].join(" ").toLowerCase();
}

/** An image's name that a narrow column breaks after its slashes. */
function breakable(image) {
  return image.split(/(?<=\/)/).flatMap((part) => [part, h("wbr")]);
}

/** An empty table of deployments; rows go into `body`. */
export function deploymentTable(style = "") {
  const body = h("tbody");
  const names = ["Name", "Status", "Cluster", "Needs", "Priority", "Created"];
  const node = h("div", { class: `table ${style}` }, h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body));
  return { node, body };
}

/** What a row depends on. */
export function deploymentStamp(one) {
  return [one, clusters.get(one.cluster_id)?.name, owner(one)];
}

/** One deployment as a row; a click anywhere opens it, the link does so for the keyboard. */
export function deploymentRow(one) {
  const href = `#/deployments/${one.id}`;
  const cluster = clusters.get(one.cluster_id);
  const open = (event) => event.target.closest("a, button") || getSelection().toString() || (location.hash = href);
  return h("tr", { onclick: open },
    h("td", { class: "main-cell" }, h("a", { href }, one.name || one.id), ownerTag(one), one.image ? h("p", { class: "sub image" }, breakable(one.image)) : h("p", { class: "sub" }, "holds capacity, runs nothing")),
    h("td", {}, status(one)),
    h("td", { "data-label": "Cluster", class: "nowrap" }, cluster ? h("a", { href: `#/clusters/${cluster.id}` }, cluster.name) : one.cluster_id ?? h("span", { class: "faint" }, "any")),
    h("td", { "data-label": "Needs" }, quantities(one.resources), one.replicas > 1 && h("span", { class: "faint" }, `\u00a0×\u00a0${one.replicas}`)),
    h("td", { "data-label": "Priority", class: "figure" }, one.priority),
    h("td", { "data-label": "Created", class: "nowrap" }, time(one.created_at)));
}
