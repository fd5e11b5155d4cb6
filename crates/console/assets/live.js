// The console's data, kept current by the event stream.
// An event only signals that a subject changed; its state is always read from the server.

import { call, list, session, sessionEnd } from "./api.js";
import { follow } from "./stream.js";

const BATCH_MS = 120;
const MAX_SINGLE_READS = 20;
const MAX_EVENTS = 500;

const listeners = new Set();
let scheduled = false;

/** Calls `listener` after changes, at most once per frame. Returns the function that unsubscribes. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Notifies the listeners of a change. */
export function changed() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    for (const listener of [...listeners]) listener();
  }, 16);
}

/** The items of one API list. Reads are serial, so that an old response can't overwrite a newer one. */
class Collection {
  items = new Map();
  active = false;
  loaded = false;
  more = false;
  problem = null;
  #all = false;
  #ids = new Set();
  #deleted = new Set();
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

  /** Shows the response to a change at once, and rereads it: a newer event may have arrived before. */
  put(item) {
    this.items.set(item.id, item);
    changed();
    this.refresh(item.id);
  }

  /** Removes a deleted item; a response in flight must not bring it back. */
  remove(id) {
    this.#ids.delete(id);
    if (this.#reading) this.#deleted.add(id);
    if (this.items.delete(id)) changed();
  }

  /** Reads all items; from now on events keep them current. */
  load() {
    this.active = true;
    this.#all = true;
    return (this.#reading ??= this.#read(0));
  }

  /** Rereads one item, batched with others that change at the same time. */
  refresh(id) {
    this.#ids.add(id);
    return (this.#reading ??= this.#read(BATCH_MS));
  }

  async #read(delay) {
    await new Promise((done) => setTimeout(done, delay));
    while (this.#all || this.#ids.size) {
      const ids = [...this.#ids];
      const all = this.#all || ids.length > MAX_SINGLE_READS;
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
    this.#deleted.clear();
  }

  async #readAll() {
    const { items, more } = await list(this.path);
    this.items = new Map(items.filter(({ id }) => !this.#deleted.has(id)).map((item) => [item.id, item]));
    this.more = more;
    this.loaded = true;
  }

  async #readOne(id) {
    try {
      const item = await call("GET", `${this.path}/${encodeURIComponent(id)}`);
      if (!this.#deleted.has(id)) this.items.set(id, item);
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

const collections = { cluster: clusters, deployment: deployments, user: users, invite: invites, organization: organizations };

/** The latest events, newest first; users seen in events, including removed ones; the stream's state. */
export const log = { events: [], users: new Map(), state: "waiting" };

/** Starts following events; data is read after the stream has opened, so that no change is missed. */
export function start() {
  follow({
    onEvent,
    onOpen(resumed) {
      if (resumed) return;
      for (const collection of [clusters, deployments, organizations, users]) collection.load();
      if (invites.active) invites.load();
    },
    onState(state) {
      log.state = state;
      changed();
    },
  });
}

/** Adds events to the log, newest first and without duplicates. */
export function addEvents(events) {
  for (const { kind, subject, data } of events) if (kind === "user" && data?.username) log.users.set(subject, data);
  const bySeq = new Map([...events, ...log.events].map((event) => [event.seq, event]));
  log.events = [...bySeq.values()].sort((a, b) => b.seq - a.seq).slice(0, MAX_EVENTS);
  changed();
}

function onEvent(event) {
  if (event.type === "user.removed" && event.subject === session?.user.id) return sessionEnd("Your account was removed.");
  addEvents([event]);
  const collection = collections[event.kind];
  if (!collection?.active) return;
  refreshClusters(event);
  if (/\.(deleted|removed)$/.test(event.type)) collection.remove(event.subject);
  else collection.refresh(event.subject);
}

/** The cluster of each deployment as of its last event. */
const lastCluster = new Map();

/**
 * Rereads the clusters of a deployment that was created, moved or deleted: their free capacity
 * changed, and a shared cluster's own events reach only the platform administrator.
 */
function refreshClusters({ kind, subject, type, data }) {
  if (kind !== "deployment" || !clusters.active) return;
  const { placed_on, pinned_to } = data ?? {};
  const affected = new Set([lastCluster.get(subject), deployments.get(subject)?.cluster_id, placed_on, pinned_to]);
  for (const id of affected) if (id) clusters.refresh(id);
  if (type.endsWith(".deleted")) lastCluster.delete(subject);
  else lastCluster.set(subject, placed_on);
}
