// The organization: name, members and invites.

import { call, session } from "../api.js";
import { h, keyed, put, toast } from "../dom.js";
import { confirm, dialog, field, form } from "../form.js";
import { count } from "../format.js";
import { invites, organizations, users } from "../live.js";
import { failure, head, time } from "../parts.js";
import { isPlatform } from "../people.js";
import { inviteCreate, inviteRow, inviteStamp } from "./invites.js";

export function organization() {
  const top = h("div");
  const members = h("ul", { class: "rows" });
  const open = h("ul", { class: "rows" });
  const all = h("ul", { class: "rows" });
  const others = h("section", { class: "panel", hidden: !isPlatform() }, h("h2", {}, "All organizations"), all);
  const isOwner = () => session.user.role === "owner" || isPlatform();
  const node = h("div", {}, top,
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Members"), members),
      h("section", { class: "panel" }, h("h2", {}, "Invites", isOwner() && h("button", { class: "plain small", "data-new": true, onclick: inviteCreate }, "New invite")), open)),
    others);
  let rendered = null;

  function update() {
    const mine = organizations.get(session.user.organization_id);
    const mark = JSON.stringify([mine, organizations.loaded]);
    if (rendered !== mark) put(top, mine ? about(mine, isOwner()) : head("Organization"));
    rendered = mark;
    rows(members, users, users.all.filter((user) => user.organization_id === session.user.organization_id).sort((a, b) => a.username.localeCompare(b.username)), (user) => memberRow(user, isOwner()), "No members.");
    rows(open, invites, invites.all.sort((a, b) => b.created_at.localeCompare(a.created_at)), (invite) => inviteRow(invite, isOwner()), isOwner() ? "No invites. Create one to add a member." : "No invites.", inviteStamp);
    rows(all, organizations, organizations.all.sort((a, b) => a.name.localeCompare(b.name)), organizationRow, "");
  }

  invites.load();
  organizations.load();
  return { title: "Organization", node, update };
}

function rows(node, collection, items, build, none, stamp) {
  keyed(node, items, (item) => item.id, build, stamp);
  if (items.length) return;
  put(node, collection.problem ? failure(collection.problem, () => collection.load()) : h("li", { class: "none" }, collection.loaded ? none : "Loading…"));
}

function about(mine, isOwner) {
  return head(mine.name, {
    below: h("p", { class: "sub" }, `${count(mine.deployments, "deployment")} · created `, time(mine.created_at)),
    actions: isOwner && h("button", { class: "plain", onclick: () => rename(mine) }, "Rename"),
  });
}

function rename(mine) {
  dialog("Rename organization", (close) => form({
    fields: [field({ name: "name", label: "Name", required: true, value: mine.name })],
    action: "Save", cancel: close,
    async send({ name }) {
      organizations.put({ ...mine, ...(await call("PATCH", `/organizations/${mine.id}`, { name: name.trim() })) });
      close();
    },
  }));
}

function memberRow(user, isOwner) {
  const self = user.id === session.user.id;
  const role = isOwner
    ? h("select", { "aria-label": `Role of ${user.username}`, class: "small", onchange: (event) => setRole(user, event.target) }, ["owner", "member", "viewer"].map((name) => h("option", { value: name, selected: user.role === name }, name)))
    : h("span", { class: "tag" }, user.role);
  return h("li", { class: "member" },
    h("span", { class: "avatar", "aria-hidden": "true" }, user.username.slice(0, 1).toUpperCase()),
    h("div", { class: "grow" }, h("b", {}, user.display_name || user.username), self && h("span", { class: "tag" }, "you"), user.access !== "tenant" && h("span", { class: "tag" }, user.access),
      h("p", { class: "sub" }, user.username, " · joined ", time(user.created_at))),
    role,
    isOwner && !self && h("button", { class: "plain small warn", "aria-label": `Remove ${user.username}`, onclick: () => remove(user) }, "Remove"));
}

async function setRole(user, select) {
  try {
    users.put(await call("PATCH", `/users/${user.id}`, { role: select.value }));
    toast(`${user.username} is now ${select.value}`);
  } catch (problem) {
    select.value = user.role;
    toast(problem.message, "bad");
  }
}

function remove(user) {
  confirm({
    title: `Remove ${user.username}?`,
    text: "The user can no longer sign in. Their clusters and deployments stay with the organization.",
    action: "Remove member",
    async send() {
      await call("DELETE", `/users/${user.id}`);
      users.remove(user.id);
    },
  });
}

function organizationRow(organization) {
  return h("li", {}, h("div", { class: "row-head" }, h("b", {}, organization.name), h("span", { class: "side-note" }, count(organization.deployments, "deployment"), " · created ", time(organization.created_at))));
}
