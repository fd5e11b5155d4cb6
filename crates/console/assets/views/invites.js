// Invites: created, shown once, reopened or revoked by an owner.

import { call, creator } from "../api.js";
import { copy, h, put, toast } from "../dom.js";
import { confirm, dialog, field, form } from "../form.js";
import { invites } from "../live.js";
import { ownerTag, time } from "../parts.js";
import { byUsername, owner, person } from "../people.js";

const TERMS = [["", "The server's default"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]];

const term = () => field({ name: "expires_in", label: "Valid for", as: "select", value: "", options: TERMS });
const ROLES = [["member", "Member: creates and changes"], ["viewer", "Viewer: only reads"], ["owner", "Owner: also manages members"]];

const role = () => field({ name: "role", label: "Role", as: "select", value: "member", options: ROLES });
const body = ({ expires_in, role }) => ({ ...(expires_in && { expires_in: Number(expires_in) }), ...(role && { role }) });

/** Creates an invite and shows its code once. */
export function inviteCreate() {
  const create = creator("/invites");
  const node = dialog("New invite", (close) => form({
    fields: [h("p", {}, "Anyone with the code can join your organization."), role(), term()],
    action: "Create invite", cancel: close,
    async send(values) {
      const { code, ...created } = await create(body(values));
      invites.put(created);
      put(node.querySelector(".dialog-body"), codeNode(code, created, close));
      node.querySelector(".primary").focus();
    },
  }));
}

function codeNode(code, created, close) {
  const link = `${location.origin}/#/invite/${encodeURIComponent(code)}`;
  return h("div", { class: "once" },
    h("p", {}, h("b", {}, "Copy the code now."), " It is not shown again. It expires ", time(created.expires_at), "."),
    h("output", { class: "code", "aria-label": "Invite code" }, code),
    h("div", { class: "actions" },
      h("button", { class: "plain", onclick: () => copy(link) }, "Copy as link"),
      h("button", { class: "plain", onclick: () => copy(code) }, "Copy code"),
      h("button", { class: "primary", onclick: close }, "Done")));
}

/** One invite; owners can reopen or revoke it. */
export function inviteRow(invite, isOwner) {
  const [label, tone] = state(invite);
  return h("li", { class: "member" },
    h("div", { class: "grow" },
      h("span", { class: `badge ${tone}` }, label), ownerTag(invite),
      h("p", { class: "sub" }, "created by ", createdBy(invite), ` · ${invite.role} · `, when(invite), invite.times_used > 1 && ` · used ${invite.times_used} times`)),
    isOwner && !invite.active && h("button", { class: "plain small", onclick: () => reopen(invite) }, "Reopen"),
    isOwner && invite.active && h("button", { class: "plain small warn", onclick: () => revoke(invite) }, "Revoke"));
}

function state(invite) {
  if (invite.active) return ["Open", "good"];
  if (invite.used_by) return [`Used by ${byUsername(invite.used_by)}`, "calm"];
  return ["Expired", "wait"];
}

/** The relevant time of an invite. The expiry of a used invite does not matter. */
function when(invite) {
  if (invite.active) return ["expires ", time(invite.expires_at)];
  return invite.used_by ? ["used ", time(invite.used_at)] : ["expired ", time(invite.expires_at)];
}

function createdBy(invite) {
  return person(invite.created_by, invite.organization_id);
}

/** The data that a row depends on. */
export function inviteStamp(invite) {
  return [invite, state(invite), createdBy(invite), owner(invite)];
}

function reopen(invite) {
  dialog("Reopen invite", (close) => form({
    fields: [h("p", {}, "The same code can be used once more. Anyone with the code can join."), term()],
    action: "Reopen", cancel: close,
    async send(values) {
      const { code: _, ...opened } = await call("POST", `/invites/${invite.id}/reopen`, body(values));
      invites.put(opened);
      close();
      toast("Invite reopened");
    },
  }));
}

function revoke(invite) {
  confirm({
    title: "Revoke this invite?", text: "Its code becomes invalid at once.", action: "Revoke invite",
    async send() {
      await call("DELETE", `/invites/${invite.id}`);
      invites.refresh(invite.id);
    },
  });
}
