// Everything at a glance: what runs, what waits and why, and what is left.

import { h, keyed, put } from "../dom.js";
import { count } from "../format.js";
import { clusters, deployments, log } from "../live.js";
import { clusterCard, empty, failure, head, ownerTag, status, time } from "../parts.js";
import { owner } from "../people.js";
import { eventRow, eventStamp, recentEvents } from "./events.js";
import { deploymentCreate } from "./deployment_form.js";

const CLUSTERS_SHOWN = 12;
const WAITING_SHOWN = 8;
const EVENTS_SHOWN = 8;

/** Deployments that want a place, first in line first. */
export function waiting() {
  return deployments.all.filter((one) => one.status === "queued" || one.status === "preempted")
    .sort((a, b) => b.priority - a.priority || a.created_at.localeCompare(b.created_at));
}

export function overview() {
  const tiles = h("div", { class: "tiles" });
  const cards = h("div", { class: "cards" });
  const more = h("p", { class: "more" });
  const queue = h("ul", { class: "rows" });
  const recent = h("ol", { class: "rows events" });
  const queueCard = h("section", { class: "panel" }, h("h2", {}, "Waiting for room"), queue);
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
    const line = waiting();
    keyed(tiles, counts(line), (tile) => tile.label, tileNode);
    const all = clusters.all.sort((a, b) => a.name.localeCompare(b.name));
    keyed(cards, all.slice(0, CLUSTERS_SHOWN), (one) => one.id, clusterCard, (one) => [one, owner(one)]);
    if (!all.length) put(cards, empty("No clusters yet", "A cluster is where deployments run.", h("a", { class: "button plain", href: "#/clusters" }, "Go to clusters")));
    put(more, all.length > CLUSTERS_SHOWN && h("a", { href: "#/clusters" }, `All ${count(all.length, "cluster")}`));
    keyed(queue, line.slice(0, WAITING_SHOWN), (one) => one.id, waitingRow, (one) => [one, owner(one)]);
    if (!line.length) put(queue, h("li", { class: "none" }, "Nothing waits. Every deployment has its place."));
    keyed(recent, log.events.slice(0, EVENTS_SHOWN), (event) => event.seq, eventRow, eventStamp);
    if (!log.events.length) put(recent, h("li", { class: "none" }, "Nothing has happened lately."));
  }

  recentEvents();
  return { title: "Overview", node, update };
}

function counts(line) {
  const by = (...names) => deployments.all.filter((one) => names.includes(one.status)).length;
  const plus = deployments.more ? "+" : "";
  const ready = clusters.all.filter((one) => one.status === "ready").length;
  return [
    { label: "Running", value: `${by("running")}${plus}`, tone: "good", href: "#/deployments?status=running" },
    { label: "Waiting", value: `${line.length}${plus}`, tone: line.length ? "wait" : "calm", href: "#/deployments?status=waiting" },
    { label: "Failed", value: `${by("failed")}${plus}`, tone: by("failed") ? "bad" : "calm", href: "#/deployments?status=failed" },
    { label: "Clusters ready", value: `${ready} of ${clusters.all.length}`, tone: ready === clusters.all.length ? "good" : "wait", href: "#/clusters" },
  ];
}

function tileNode({ label, value, tone, href }) {
  return h("a", { class: `tile ${tone}`, href }, h("span", { class: "tile-label" }, label), h("span", { class: "tile-value" }, value));
}

function waitingRow(one) {
  return h("li", {},
    h("div", { class: "row-head" }, h("span", {}, h("a", { href: `#/deployments/${one.id}` }, one.name || one.id), ownerTag(one)), h("span", { class: "side-note" }, `priority ${one.priority} · `, time(one.created_at))),
    status(one));
}
