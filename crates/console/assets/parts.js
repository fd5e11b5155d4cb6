// Pieces that several views show.

import { h, icon } from "./dom.js";
import { ago, byKind, count, fullTime, quantity, sentence } from "./format.js";
import { owner } from "./people.js";

const TONES = {
  ready: "good", running: "good",
  accepted: "wait", queued: "wait", preempted: "wait", waiting_for_agent: "wait", unreachable: "bad",
  scheduled: "busy", starting: "busy", provisioning: "busy", provisioned: "busy",
  failed: "bad",
};

/** A status as a word with a coloured dot. */
export function badge(status) {
  return h("span", { class: `badge ${TONES[status] ?? "calm"}` }, sentence(status));
}

/** A status with its reason below. */
export function status({ status, status_reason }) {
  return h("div", { class: "status" }, badge(status), status_reason && h("p", { class: "reason", title: status_reason }, status_reason));
}

/** A moment, told as how long ago; `tick` keeps it true. */
export function time(at) {
  return at ? h("time", { datetime: at, title: fullTime(at) }, ago(at)) : "–";
}

/** Brings every shown moment up to date. */
export function tick() {
  for (const node of document.querySelectorAll("time[datetime]")) node.textContent = ago(node.dateTime);
}

/** One bar per resource type: how much is used of how much. */
export function bars(capacity) {
  const kinds = Object.entries(capacity ?? {}).sort(byKind);
  return h("div", { class: "bars" }, kinds.map(([kind, { total, used, free }]) => {
    const share = total > 0 ? Math.min(used / total, 1) : 0;
    const text = `${quantity(kind, used)} of ${quantity(kind, total)} used, ${quantity(kind, free)} free`;
    const level = h("span", { class: share >= 0.9 ? "level high" : "level" });
    level.style.width = `${share * 100}%`;
    return h("div", { class: "bar" },
      h("span", { class: "bar-kind" }, kind),
      h("span", { class: "bar-text" }, h("b", {}, quantity(kind, free)), ` free of ${quantity(kind, total)}`),
      h("div", { class: "track", role: "meter", "aria-label": kind, "aria-valuemin": "0", "aria-valuemax": total, "aria-valuenow": used, "aria-valuetext": text, title: text }, level));
  }));
}

/** Whose something is, for who sees more than their own. */
export function ownerTag(item) {
  const name = owner(item);
  return name && h("span", { class: "tag", title: `Organization ${name}` }, name);
}

/** A cluster as a card that leads to its page. */
export function clusterCard(cluster) {
  const where = [cluster.provider, cluster.cloud_provider, cluster.region].filter(Boolean);
  return h("article", { class: "card cluster" },
    h("header", {},
      h("h3", {}, h("a", { href: `#/clusters/${cluster.id}` }, cluster.name), cluster.shared ? h("span", { class: "tag" }, "shared") : ownerTag(cluster)),
      badge(cluster.status)),
    cluster.status_reason && h("p", { class: "reason" }, cluster.status_reason),
    bars(cluster.capacity),
    h("footer", {}, h("span", {}, count(cluster.deployments, "deployment")), h("span", {}, [...new Set(where)].join(" · "))));
}

/** Says that there is nothing, and what to do about it. */
export function empty(title, text, action) {
  return h("div", { class: "empty" }, h("h3", {}, title), h("p", {}, text), action);
}

/** What could not be read, with a way to try again. */
export function failure(problem, again) {
  return h("div", { class: "empty bad", role: "alert" }, h("h3", {}, "This could not be loaded"), h("p", {}, problem.message),
    again && h("button", { class: "plain", onclick: again }, "Try again"));
}

/** A page's head: title, what stands below it, and its actions. */
export function head(title, { below, actions, back } = {}) {
  return h("header", { class: "page-head" },
    back && h("a", { class: "back", href: back[0] }, icon("back"), back[1]),
    h("div", { class: "page-title" }, h("h1", { tabindex: "-1" }, title), below),
    h("div", { class: "page-actions" }, actions));
}

/** Names and values, side by side; what has no value is left out. */
export function facts(rows) {
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** `{a: "b"}` as small tags. */
export function labels(pairs) {
  const all = Object.entries(pairs ?? {});
  return all.length ? all.map(([key, value]) => h("span", { class: "tag" }, value === "" ? key : `${key}=${value}`)) : null;
}

const TITLES = { created: "Created", updated: "Changed", deleted: "Deleted", redeemed: "Redeemed", reopened: "Opened again", revoked: "Revoked", removed: "Removed" };

/** What an event means in words: the last part of its type. */
export function eventTitle(event) {
  const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
  return TITLES[verb] ?? sentence(verb);
}

/** The sentence that an event carries, if any. */
export function eventReason(event) {
  const { status_reason, reason, detail, message } = event.data ?? {};
  return [status_reason, reason, detail, message].find((text) => typeof text === "string" && text) ?? null;
}

/** Colours an event like the status that it reports. */
export function eventTone(event) {
  const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
  return TONES[verb] ?? "calm";
}
