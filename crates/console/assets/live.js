// What the console knows, kept true by the event stream.
// An event says only that a subject changed; what it is now is always read from the server.

import { call, list, session, sessionEnd } from "./api.js";
import { follow } from "./stream.js";

const GATHER_MS = 120;
const ONE_BY_ONE = 20;
const EVENTS_KEPT = 500;

const listeners = new Set();
let due = false;

/** Calls back, at most once per frame, after something changed. Gives the function that stops it. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Says that something changed. */
export function changed() {
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    for (const listener of [...listeners]) listener();
  }, 16);
}

/** The items of one list of the API. One reader at a time, so that an old answer can't overwrite a new one. */
class Collection {
  items = new Map();
  wanted = false;
  loaded = false;
  more = false;
  problem = null;
  #all = false;
  #ids = new Set();
  #gone = new Set();
  #reading = null;

  constructor(path) {
    this.path = path;
  }

  get all() {
    return [...this.items.values()];
  }

  get(id) {
    return this.items.get(id);
  }

  /** Shows the answer to a change at once; an event may have overtaken it, so it is read again. */
  put(item) {
    this.items.set(item.id, item);
    changed();
    this.refresh(item.id);
  }

  /** Forgets an item that is gone; an answer that is still on its way must not bring it back. */
  remove(id) {
    this.#ids.delete(id);
    if (this.#reading) this.#gone.add(id);
    if (this.items.delete(id)) changed();
  }

  /** Reads everything; from now on events keep it true. */
  load() {
    this.wanted = true;
    this.#all = true;
    return (this.#reading ??= this.#read(0));
  }

  /** Reads one item again, together with others that change at the same time. */
  refresh(id) {
    this.#ids.add(id);
    return (this.#reading ??= this.#read(GATHER_MS));
  }

  async #read(delay) {
    await new Promise((done) => setTimeout(done, delay));
    while (this.#all || this.#ids.size) {
      const ids = [...this.#ids];
      const all = this.#all || ids.length > ONE_BY_ONE;
      this.#ids.clear();
      this.#all = false;
      try {
        if (all) await this.#readAll();
        else await Promise.all(ids.map((id) => this.#readOne(id)));
        this.problem = null;
      } catch (problem) {
        this.problem = problem;
      }
      changed();
    }
    this.#reading = null;
    this.#gone.clear();
  }

  async #readAll() {
    const { items, more } = await list(this.path);
    this.items = new Map(items.filter(({ id }) => !this.#gone.has(id)).map((item) => [item.id, item]));
    this.more = more;
    this.loaded = true;
  }

  async #readOne(id) {
    try {
      const item = await call("GET", `${this.path}/${encodeURIComponent(id)}`);
      if (!this.#gone.has(id)) this.items.set(id, item);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      this.items.delete(id);
    }
  }
}

export const clusters = new Collection("/clusters");
export const deployments = new Collection("/deployments");
export const users = new Collection("/users");
export const invites = new Collection("/invites");
export const organizations = new Collection("/organizations");

const kept = { cluster: clusters, deployment: deployments, user: users, invite: invites, organization: organizations };

/** The newest events, newest first; the users that events told of, also those who left; how the stream is. */
export const log = { events: [], users: new Map(), state: "waiting" };

/** Begins to follow; everything is read once the stream is open, so that nothing falls between. */
export function start() {
  follow({
    onEvent,
    onOpen(resumed) {
      if (resumed) return;
      for (const one of [clusters, deployments, organizations, users]) one.load();
      if (invites.wanted) invites.load();
    },
    onState(state) {
      log.state = state;
      changed();
    },
  });
}

/** Puts events into the log, newest first and without repeats. */
export function remember(events) {
  for (const { kind, subject, data } of events) if (kind === "user" && data?.username) log.users.set(subject, data);
  const bySeq = new Map([...events, ...log.events].map((event) => [event.seq, event]));
  log.events = [...bySeq.values()].sort((a, b) => b.seq - a.seq).slice(0, EVENTS_KEPT);
  changed();
}

function onEvent(event) {
  if (event.type === "user.removed" && event.subject === session?.user.id) return sessionEnd("Your account was removed.");
  remember([event]);
  const collection = kept[event.kind];
  if (!collection?.wanted) return;
  refreshClusters(event);
  if (/\.(deleted|removed)$/.test(event.type)) collection.remove(event.subject);
  else collection.refresh(event.subject);
}

/** Where each deployment was when an event last told of it. */
const places = new Map();

/**
 * A deployment that came, moved or went changed what its clusters have left. A shared cluster
 * has no other way to tell: its own events reach only the platform administrator.
 */
function refreshClusters({ kind, subject, type, data }) {
  if (kind !== "deployment" || !clusters.wanted) return;
  const { placed_on, pinned_to } = data ?? {};
  const touched = new Set([places.get(subject), deployments.get(subject)?.cluster_id, placed_on, pinned_to]);
  for (const id of touched) if (id) clusters.refresh(id);
  if (type.endsWith(".deleted")) places.delete(subject);
  else places.set(subject, placed_on);
}
