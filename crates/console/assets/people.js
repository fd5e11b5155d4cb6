// Display names of actors and owners, instead of ids.

import { call, session } from "./api.js";
import { changed, log, organizations, users } from "./live.js";

const ACTORS = { agent: "agent", server: "server", anonymous: "unauthenticated user" };

/** Names of users that are not in the list of users: removed ones, and those of other organizations. */
const names = new Map();
const requested = new Set();

/** Whether the caller is a platform administrator, who sees all organizations. */
export function isPlatform() {
  return session?.user.access === "platform";
}

/** The display name of an actor or creator; `organization` is the id of the subject's organization. */
export function person(actor, organization = null) {
  const [, worker] = /^worker:(.+)$/.exec(actor) ?? [];
  if (worker) return `${worker.replaceAll("_", " ")} worker`;
  if (ACTORS[actor]) return ACTORS[actor];
  const id = String(actor).replace(/^user:/, "");
  const user = users.get(id) ?? (session?.user.id === id ? session.user : log.users.get(id));
  if (user) return displayName(user);
  if (isPlatform() && organization) loadMembers(organization);
  return names.get(id) ?? "unknown user";
}

/** The display name of the user with this username. */
export function byUsername(username) {
  return displayName(users.all.find((user) => user.username === username) ?? { username });
}

function displayName({ display_name, username }) {
  return display_name || username;
}

/** Reads the member names of another organization, once. */
async function loadMembers(organization) {
  if (requested.has(organization)) return;
  requested.add(organization);
  const found = await call("GET", `/organizations/${encodeURIComponent(organization)}`).catch(() => null);
  for (const user of found?.members ?? []) names.set(user.id, displayName(user));
  if (found) changed();
}

/** The name of the organization that owns `item`; null unless the caller is a platform administrator. */
export function owner(item) {
  return isPlatform() ? organizations.get(item.organization_id)?.name ?? null : null;
}
