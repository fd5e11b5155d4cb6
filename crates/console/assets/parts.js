// Components shared by several views.

import { h, icon } from "./dom.js";
import { ago, byKind, count, fullTime, humanize, quantity } from "./format.js";
import { owner } from "./people.js";

const TONES = {
  ready: "good", running: "good",
  accepted: "wait", queued: "wait", preempted: "wait", waiting_for_agent: "wait", unreachable: "bad",
  scheduled: "busy", starting: "busy", provisioning: "busy", provisioned: "busy",
  failed: "bad",
};

/** A status with a coloured dot. */
export function badge(status) {
  return h("span", { class: `badge ${TONES[status] ?? "calm"}` }, humanize(status));
}

/** A status with its reason below. */
export function status({ status, status_reason }) {
  return h("div", { class: "status" }, badge(status), status_reason && h("p", { class: "reason", title: status_reason }, status_reason));
}

/** A relative time; `tick` keeps it current. */
export function time(at) {
  return at ? h("time", { datetime: at, title: fullTime(at) }, ago(at)) : "–";
}

/** Updates all relative times on the page. */
export function tick() {
  for (const node of document.querySelectorAll("time[datetime]")) node.textContent = ago(node.dateTime);
}

/** One bar per resource type: used and total capacity. */
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

/** The owning organization, shown to platform administrators only. */
export function ownerTag(item) {
  const name = owner(item);
  return name && h("span", { class: "tag", title: `Organization ${name}` }, name);
}

/** A cluster as a card that links to its page. */
export function clusterCard(cluster) {
  const location = [cluster.provider, cluster.cloud_provider, cluster.region].filter(Boolean);
  return h("article", { class: "card cluster" },
    h("header", {},
      h("h3", {}, h("a", { href: `#/clusters/${cluster.id}` }, cluster.name), cluster.shared ? h("span", { class: "tag" }, "shared") : ownerTag(cluster)),
      badge(cluster.status)),
    cluster.status_reason && h("p", { class: "reason" }, cluster.status_reason),
    bars(cluster.capacity),
    h("footer", {}, h("span", {}, count(cluster.deployments, "deployment")), h("span", {}, [...new Set(location)].join(" · "))));
}

/** An empty state with a suggested action. */
export function empty(title, text, action) {
  return h("div", { class: "empty" }, h("h3", {}, title), h("p", {}, text), action);
}

/** A load error with a retry button. */
export function failure(problem, retry) {
  return h("div", { class: "empty bad", role: "alert" }, h("h3", {}, "Loading failed"), h("p", {}, problem.message),
    retry && h("button", { class: "plain", onclick: retry }, "Retry"));
}

/** A page header: title, content below it, and actions. */
export function head(title, { below, actions, back } = {}) {
  return h("header", { class: "page-head" },
    back && h("a", { class: "back", href: back[0] }, icon("back"), back[1]),
    h("div", { class: "page-title" }, h("h1", { tabindex: "-1" }, title), below),
    h("div", { class: "page-actions" }, actions));
}

/** A list of names and values; entries without a value are omitted. */
export function facts(rows) {
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Labels (`{a: "b"}`) as tags. */
export function labels(pairs) {
  const all = Object.entries(pairs ?? {});
  return all.length ? all.map(([key, value]) => h("span", { class: "tag" }, value === "" ? key : `${key}=${value}`)) : null;
}

const TITLES = { created: "Created", updated: "Updated", deleted: "Deleted", redeemed: "Redeemed", reopened: "Reopened", revoked: "Revoked", removed: "Removed" };

/** The title of an event: the last part of its type. */
export function eventTitle(event) {
  const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
  return TITLES[verb] ?? humanize(verb);
}

/** The message of an event, if any. */
export function eventReason(event) {
  const { status_reason, reason, detail, message } = event.data ?? {};
  return [status_reason, reason, detail, message].find((text) => typeof text === "string" && text) ?? null;
}

/** The colour of an event: that of the status it reports. */
export function eventTone(event) {
  const verb = event.type.slice(event.type.lastIndexOf(".") + 1);
  return TONES[verb] ?? "calm";
}
