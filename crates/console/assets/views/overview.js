// Overview: running and pending deployments, free capacity, latest events.

import { h, keyed, put } from "../dom.js";
import { count } from "../format.js";
import { clusters, deployments, log } from "../live.js";
import { clusterCard, empty, failure, head, ownerTag, status, time } from "../parts.js";
import { owner } from "../people.js";
import { eventRow, eventStamp, recentEvents } from "./events.js";
import { deploymentCreate } from "./deployment_form.js";

const CLUSTERS_SHOWN = 12;
const PENDING_SHOWN = 8;
const EVENTS_SHOWN = 8;

/** Pending deployments in queue order. */
export function pending() {
  return deployments.all.filter((deployment) => deployment.status === "queued" || deployment.status === "preempted")
    .sort((a, b) => b.priority - a.priority || a.created_at.localeCompare(b.created_at));
}

export function overview() {
  const tiles = h("div", { class: "tiles" });
  const cards = h("div", { class: "cards" });
  const more = h("p", { class: "more" });
  const queue = h("ul", { class: "rows" });
  const recent = h("ol", { class: "rows events" });
  const queueCard = h("section", { class: "panel" }, h("h2", {}, "Waiting for capacity"), queue);
  const node = h("div", {},
    head("Overview", { actions: h("button", { class: "primary", "data-new": true, onclick: () => deploymentCreate() }, "New deployment") }),
    tiles,
    h("section", {}, h("h2", {}, "Clusters"), cards, more),
    h("div", { class: "columns" }, queueCard, h("section", { class: "panel" }, h("h2", {}, "Latest events", h("a", { href: "#/events" }, "All")), recent)));

  function update() {
    const problem = clusters.problem ?? deployments.problem;
    if (!clusters.loaded || !deployments.loaded) {
      put(tiles, problem ? failure(problem, () => (clusters.load(), deployments.load())) : h("p", { class: "loading" }, "Loading…"));
      return;
    }
    const pendingDeployments = pending();
    keyed(tiles, counts(pendingDeployments), (tile) => tile.label, tileNode);
    const all = clusters.all.sort((a, b) => a.name.localeCompare(b.name));
    keyed(cards, all.slice(0, CLUSTERS_SHOWN), (cluster) => cluster.id, clusterCard, (cluster) => [cluster, owner(cluster)]);
    if (!all.length) put(cards, empty("No clusters yet", "A cluster provides capacity to run deployments.", h("a", { class: "button plain", href: "#/clusters" }, "Go to clusters")));
    put(more, all.length > CLUSTERS_SHOWN && h("a", { href: "#/clusters" }, `All ${count(all.length, "cluster")}`));
    keyed(queue, pendingDeployments.slice(0, PENDING_SHOWN), (deployment) => deployment.id, pendingRow, (deployment) => [deployment, owner(deployment)]);
    if (!pendingDeployments.length) put(queue, h("li", { class: "none" }, "No pending deployments."));
    keyed(recent, log.events.slice(0, EVENTS_SHOWN), (event) => event.seq, eventRow, eventStamp);
    if (!log.events.length) put(recent, h("li", { class: "none" }, "No recent events."));
  }

  recentEvents();
  return { title: "Overview", node, update };
}

function counts(pendingDeployments) {
  const by = (...names) => deployments.all.filter((deployment) => names.includes(deployment.status)).length;
  const plus = deployments.more ? "+" : "";
  const ready = clusters.all.filter((cluster) => cluster.status === "ready").length;
  return [
    { label: "Running", value: `${by("running")}${plus}`, tone: "good", href: "#/deployments?status=running" },
    { label: "Pending", value: `${pendingDeployments.length}${plus}`, tone: pendingDeployments.length ? "wait" : "calm", href: "#/deployments?status=pending" },
    { label: "Failed", value: `${by("failed")}${plus}`, tone: by("failed") ? "bad" : "calm", href: "#/deployments?status=failed" },
    { label: "Clusters ready", value: `${ready} of ${clusters.all.length}`, tone: ready === clusters.all.length ? "good" : "wait", href: "#/clusters" },
  ];
}

function tileNode({ label, value, tone, href }) {
  return h("a", { class: `tile ${tone}`, href }, h("span", { class: "tile-label" }, label), h("span", { class: "tile-value" }, value));
}

function pendingRow(deployment) {
  return h("li", {},
    h("div", { class: "row-head" }, h("span", {}, h("a", { href: `#/deployments/${deployment.id}` }, deployment.name || deployment.id), ownerTag(deployment)), h("span", { class: "side-note" }, `priority ${deployment.priority} · `, time(deployment.created_at))),
    status(deployment));
}
