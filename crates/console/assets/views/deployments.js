// All deployments with status, reason and priority.

import { h, keyed, put } from "../dom.js";
import { humanize, quantities } from "../format.js";
import { clusters, deployments as collection } from "../live.js";
import { empty, failure, head, ownerTag, status, time } from "../parts.js";
import { owner } from "../people.js";
import { deploymentCreate } from "./deployment_form.js";

const PAGE = 100;
const PENDING = ["queued", "preempted"];
const GROUPS = ["all", "running", "pending", "starting", "failed", "completed"];

export function deployments() {
  const requested = new URLSearchParams(location.hash.split("?")[1]).get("status");
  let group = GROUPS.includes(requested) ? requested : "all";
  let limit = PAGE;
  const search = h("input", { type: "search", placeholder: "Filter by name, image, cluster or label", "aria-label": "Filter deployments", oninput: update });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Status" });
  const table = deploymentTable();
  const footer = h("div", { class: "more" });
  const create = () => h("button", { class: "primary", "data-new": true, onclick: () => deploymentCreate() }, "New deployment");
  const node = h("div", {}, head("Deployments", { actions: create() }), h("div", { class: "filters" }, search, chips), table.node, footer);

  function choose(next) {
    group = next;
    limit = PAGE;
    history.replaceState(null, "", next === "all" ? "#/deployments" : `#/deployments?status=${next}`);
    update();
  }

  function update() {
    const { all } = collection;
    keyed(chips, GROUPS.map((name) => ({ name, number: all.filter((deployment) => inGroup(deployment, name)).length, on: name === group })), (chip) => chip.name,
      (chip) => h("button", { class: "chip", "aria-pressed": String(chip.on), onclick: () => choose(chip.name) }, humanize(chip.name), h("span", { class: "number" }, chip.number)));
    const query = search.value.trim().toLowerCase();
    const found = all.filter((deployment) => inGroup(deployment, group) && (!query || text(deployment).includes(query))).sort((a, b) => b.created_at.localeCompare(a.created_at) || b.id.localeCompare(a.id));
    keyed(table.body, found.slice(0, limit), (deployment) => deployment.id, deploymentRow, deploymentStamp);
    table.body.parentElement.hidden = !found.length;
    put(footer, footerNode(found));
  }

  function footerNode(found) {
    if (!collection.loaded) return collection.problem ? failure(collection.problem, () => collection.load()) : h("p", { class: "loading" }, "Loading…");
    if (!collection.all.length) return empty("No deployments yet", "Specify an image and its resources; Paddock places it on a cluster.", create());
    if (!found.length) return empty("No deployment matches", "Choose another status or a shorter filter.");
    if (found.length > limit) return h("button", { class: "plain", onclick: () => ((limit += PAGE), update()) }, `Show ${Math.min(PAGE, found.length - limit)} more of ${found.length}`);
    return collection.more && h("p", { class: "hint" }, `Only the first ${collection.all.length} are shown. Use the API to list all.`);
  }

  return { title: "Deployments", node, update };
}

function inGroup(deployment, group) {
  if (group === "all") return true;
  if (group === "pending") return PENDING.includes(deployment.status);
  if (group === "starting") return deployment.status === "scheduled" || deployment.status === "starting";
  return deployment.status === group;
}

function text(deployment) {
  return [deployment.name, deployment.image, deployment.id, deployment.status, owner(deployment), clusters.get(deployment.cluster_id)?.name, ...Object.entries(deployment.labels ?? {}).flat()].join(" ").toLowerCase();
}

/** An image name that can wrap after its slashes. */
function breakable(image) {
  return image.split(/(?<=\/)/).flatMap((part) => [part, h("wbr")]);
}

/** An empty table of deployments; rows go into `body`. */
export function deploymentTable(style = "") {
  const body = h("tbody");
  const names = ["Name", "Status", "Cluster", "Resources", "Priority", "Created"];
  const node = h("div", { class: `table ${style}` }, h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), body));
  return { node, body };
}

/** The data that a row depends on. */
export function deploymentStamp(deployment) {
  return [deployment, clusters.get(deployment.cluster_id)?.name, owner(deployment)];
}

/** One deployment as a row; a click anywhere opens it, and the link serves the keyboard. */
export function deploymentRow(deployment) {
  const href = `#/deployments/${deployment.id}`;
  const cluster = clusters.get(deployment.cluster_id);
  const open = (event) => event.target.closest("a, button") || getSelection().toString() || (location.hash = href);
  return h("tr", { onclick: open },
    h("td", { class: "main-cell" }, h("a", { href }, deployment.name || deployment.id), ownerTag(deployment), deployment.image ? h("p", { class: "sub image" }, breakable(deployment.image)) : h("p", { class: "sub" }, "no image, only reserves capacity")),
    h("td", {}, status(deployment)),
    h("td", { "data-label": "Cluster", class: "nowrap" }, cluster ? h("a", { href: `#/clusters/${cluster.id}` }, cluster.name) : deployment.cluster_id ?? h("span", { class: "faint" }, "any")),
    h("td", { "data-label": "Resources" }, quantities(deployment.resources), deployment.replicas > 1 && h("span", { class: "faint" }, `\u00a0×\u00a0${deployment.replicas}`)),
    h("td", { "data-label": "Priority", class: "figure" }, deployment.priority),
    h("td", { "data-label": "Created", class: "nowrap" }, time(deployment.created_at)));
}
