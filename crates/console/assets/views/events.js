// The event log, newest first, updated live.

import { call, session } from "../api.js";
import { h, keyed, put } from "../dom.js";
import { addEvents, clusters, deployments, invites, log, organizations, users } from "../live.js";
import { eventReason, eventTitle, eventTone, head, ownerTag, time } from "../parts.js";
import { owner, person } from "../people.js";

const HISTORY_MS = 24 * 3600 * 1000;
const PAGE = 1000;
const MAX_PAGES = 10;

let requested = false;

/** Reads the events of the last 24 hours once; the stream delivers later ones. */
export async function recentEvents() {
  if (requested || !session) return;
  requested = true;
  const since = new Date(Date.now() - HISTORY_MS).toISOString();
  let after = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = new URLSearchParams({ limit: PAGE, since, ...(after && { after }) });
    const response = await call("GET", `/events?${query}`).catch(() => null);
    if (!response) return;
    addEvents(response.items);
    after = response.next;
    if (!after) return;
  }
}

export function events() {
  const kinds = h("select", { "aria-label": "Kind", onchange: update });
  const search = h("input", { type: "search", placeholder: "Filter by name, type or actor", "aria-label": "Filter events", oninput: update });
  const pause = h("button", { class: "plain", "aria-pressed": "false", onclick: toggle }, "Pause");
  const rows = h("ol", { class: "rows events panel" });
  const node = h("div", {}, head("Events", { actions: pause }), h("div", { class: "filters" }, search, kinds), rows);
  let paused = null;

  function toggle() {
    paused = paused ? null : log.events;
    pause.setAttribute("aria-pressed", String(paused !== null));
    update();
  }

  function update() {
    const fresh = paused ? log.events.filter((event) => event.seq > (paused[0]?.seq ?? 0)).length : 0;
    put(pause, paused ? `Resume${fresh ? ` (${fresh} new)` : ""}` : "Pause");
    const all = paused ?? log.events;
    options(kinds, all);
    const query = search.value.trim().toLowerCase();
    const shown = all.filter((event) => (!kinds.value || event.kind === kinds.value) && (!query || text(event).includes(query)));
    keyed(rows, shown, (event) => event.seq, fullRow, (event) => [...eventStamp(event), actor(event)]);
    if (!shown.length) put(rows, h("li", { class: "none" }, all.length ? "No event matches." : "No events in the last 24 hours. New events appear here automatically."));
  }

  recentEvents();
  return { title: "Events", node, update };
}

function options(select, all) {
  const kinds = ["", ...new Set(all.map((event) => event.kind))].sort();
  if (select.options.length === kinds.length) return;
  const selected = select.value;
  put(select, kinds.map((kind) => h("option", { value: kind }, kind || "All kinds")));
  select.value = selected;
}

function text(event) {
  return [event.type, name(event), event.subject, actor(event), owner(event), eventReason(event)].join(" ").toLowerCase();
}

const COLLECTIONS = { cluster: clusters, deployment: deployments, organization: organizations, user: users, invite: invites };

function name(event) {
  const item = COLLECTIONS[event.kind]?.get(event.subject);
  return item?.name ?? item?.username ?? event.data?.name ?? event.data?.username ?? (event.kind === "invite" ? "" : event.subject);
}

function subject(event) {
  const hasPage = event.kind === "cluster" || event.kind === "deployment";
  const exists = COLLECTIONS[event.kind]?.get(event.subject);
  return hasPage && exists ? h("a", { href: `#/${event.kind}s/${event.subject}` }, name(event)) : h("span", {}, name(event));
}

function actor(event) {
  return person(event.actor, event.organization_id);
}

/** The data that a row depends on. */
export function eventStamp(event) {
  return [event.seq, name(event), Boolean(COLLECTIONS[event.kind]?.get(event.subject)), owner(event)];
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
