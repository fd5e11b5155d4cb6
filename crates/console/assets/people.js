// Who did something and whose it is, in words: ids mean nothing to people.

import { call, session } from "./api.js";
import { changed, log, organizations, users } from "./live.js";

const WORDS = { agent: "agent", server: "server", anonymous: "somebody not signed in" };

/** Names of users that the list of users does not hold: those who left, and other organizations'. */
const names = new Map();
const asked = new Set();

/** Does the caller see what belongs to others? */
export function isPlatform() {
  return session?.user.access === "platform";
}

/** The name of an actor or creator; `organization` is the id of whose subject it is about. */
export function person(who, organization = null) {
  const [, worker] = /^worker:(.+)$/.exec(who) ?? [];
  if (worker) return `${worker.replaceAll("_", " ")} worker`;
  if (WORDS[who]) return WORDS[who];
  const id = String(who).replace(/^user:/, "");
  const user = users.get(id) ?? (session?.user.id === id ? session.user : log.users.get(id));
  if (user) return shown(user);
  if (isPlatform() && organization) ask(organization);
  return names.get(id) ?? "somebody";
}

/** The name of the user who signs in as `username`. */
export function byUsername(username) {
  return shown(users.all.find((user) => user.username === username) ?? { username });
}

function shown({ display_name, username }) {
  return display_name || username;
}

/** Learns the names of another organization's members, once. */
async function ask(organization) {
  if (asked.has(organization)) return;
  asked.add(organization);
  const found = await call("GET", `/organizations/${encodeURIComponent(organization)}`).catch(() => null);
  for (const user of found?.members ?? []) names.set(user.id, shown(user));
  if (found) changed();
}

/** The name of the organization that has `item`; nothing for who sees only their own. */
export function owner(item) {
  return isPlatform() ? organizations.get(item.organization_id)?.name ?? null : null;
}
