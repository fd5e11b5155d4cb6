// What happened, newest first, as it happens.

import { call, session } from "../api.js";
import { h, keyed, put } from "../dom.js";
import { clusters, deployments, invites, log, organizations, remember, users } from "../live.js";
import { eventReason, eventTitle, eventTone, head, ownerTag, time } from "../parts.js";
import { owner, person } from "../people.js";

const BACK_MS = 24 * 3600 * 1000;
const PAGE = 1000;
const PAGES = 10;

let asked = false;

/** Reads the last day's events once; the stream brings the rest. */
export async function recentEvents() {
  if (asked || !session) return;
  asked = true;
  const since = new Date(Date.now() - BACK_MS).toISOString();
  let after = null;
  for (let page = 0; page < PAGES; page++) {
    const query = new URLSearchParams({ limit: PAGE, since, ...(after && { after }) });
    const answer = await call("GET", `/events?${query}`).catch(() => null);
    if (!answer) return;
    remember(answer.items);
    after = answer.next;
    if (!after) return;
  }
}

export function events() {
  const kinds = h("select", { "aria-label": "Kind", onchange: update });
  const search = h("input", { type: "search", placeholder: "Filter by name, type or actor", "aria-label": "Filter events", oninput: update });
  const pause = h("button", { class: "plain", "aria-pressed": "false", onclick: toggle }, "Pause");
  const rows = h("ol", { class: "rows events panel" });
  const node = h("div", {}, head("Events", { actions: pause }), h("div", { class: "filters" }, search, kinds), rows);
  let held = null;

  function toggle() {
    held = held ? null : log.events;
    pause.setAttribute("aria-pressed", String(held !== null));
    update();
  }

  function update() {
    const fresh = held ? log.events.filter((event) => event.seq > (held[0]?.seq ?? 0)).length : 0;
    put(pause, held ? `Resume${fresh ? ` (${fresh} new)` : ""}` : "Pause");
    const all = held ?? log.events;
    options(kinds, all);
    const wanted = search.value.trim().toLowerCase();
    const shown = all.filter((event) => (!kinds.value || event.kind === kinds.value) && (!wanted || text(event).includes(wanted)));
    keyed(rows, shown, (event) => event.seq, fullRow, (event) => [...eventStamp(event), actor(event)]);
    if (!shown.length) put(rows, h("li", { class: "none" }, all.length ? "No event matches." : "Nothing has happened in the last day. New events show up here by themselves."));
  }

  recentEvents();
  return { title: "Events", node, update };
}

function options(select, all) {
  const kinds = ["", ...new Set(all.map((event) => event.kind))].sort();
  if (select.options.length === kinds.length) return;
  const chosen = select.value;
  put(select, kinds.map((kind) => h("option", { value: kind }, kind || "All kinds")));
  select.value = chosen;
}

function text(event) {
  return [event.type, name(event), event.subject, actor(event), owner(event), eventReason(event)].join(" ").toLowerCase();
}

const KNOWN = { cluster: clusters, deployment: deployments, organization: organizations, user: users, invite: invites };

function name(event) {
  const item = KNOWN[event.kind]?.get(event.subject);
  return item?.name ?? item?.username ?? event.data?.name ?? event.data?.username ?? (event.kind === "invite" ? "" : event.subject);
}

function subject(event) {
  const known = event.kind === "cluster" || event.kind === "deployment";
  const gone = !KNOWN[event.kind]?.get(event.subject);
  return known && !gone ? h("a", { href: `#/${event.kind}s/${event.subject}` }, name(event)) : h("span", {}, name(event));
}

function actor(event) {
  return person(event.actor, event.organization_id);
}

/** What a row depends on. */
export function eventStamp(event) {
  return [event.seq, name(event), Boolean(KNOWN[event.kind]?.get(event.subject)), owner(event)];
}

/** One event in a short list. */
export function eventRow(event) {
  const reason = eventReason(event);
  return h("li", { class: `event ${eventTone(event)}` },
    h("div", { class: "row-head" },
      h("span", {}, h("span", { class: "event-kind" }, event.kind), " ", subject(event), " ", h("b", {}, eventTitle(event).toLowerCase()), event.kind !== "organization" && ownerTag(event)),
      h("span", { class: "side-note" }, time(event.at))),
    reason && h("p", { class: "reason" }, reason));
}

function fullRow(event) {
  const row = eventRow(event);
  row.append(h("details", {},
    h("summary", {}, h("code", {}, event.type), event.actor && ` by ${actor(event)}`),
    h("pre", {}, JSON.stringify(event, null, 2))));
  return row;
}
