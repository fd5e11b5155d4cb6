// Invites: made once, shown once, opened again or revoked by an owner.

import { call, creator } from "../api.js";
import { copy, h, put, toast } from "../dom.js";
import { confirm, dialog, field, form } from "../form.js";
import { invites } from "../live.js";
import { ownerTag, time } from "../parts.js";
import { byUsername, owner, person } from "../people.js";

const TERMS = [["", "The server's default"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]];

const term = () => field({ name: "expires_in", label: "Valid for", as: "select", value: "", options: TERMS });
const body = ({ expires_in }) => (expires_in ? { expires_in: Number(expires_in) } : {});

/** Asks how long, makes the invite, and shows its code for the only time. */
export function inviteCreate() {
  const create = creator("/invites");
  const node = dialog("New invite", (close) => form({
    fields: [h("p", {}, "Whoever has the code can join your organization as a member."), term()],
    action: "Create invite", cancel: close,
    async send(values) {
      const { code, ...made } = await create(body(values));
      invites.put(made);
      put(node.querySelector(".dialog-body"), once(code, made, close));
      node.querySelector(".primary").focus();
    },
  }));
}

function once(code, made, close) {
  const link = `${location.origin}/#/invite/${encodeURIComponent(code)}`;
  return h("div", { class: "once" },
    h("p", {}, h("b", {}, "Copy it now."), " The code is not shown again. It ends ", time(made.expires_at), "."),
    h("output", { class: "code", "aria-label": "Invite code" }, code),
    h("div", { class: "actions" },
      h("button", { class: "plain", onclick: () => copy(link) }, "Copy as link"),
      h("button", { class: "plain", onclick: () => copy(code) }, "Copy code"),
      h("button", { class: "primary", onclick: close }, "Done")));
}

/** One invite; what can be done with it depends on who looks. */
export function inviteRow(invite, isOwner) {
  const [word, tone] = state(invite);
  return h("li", { class: "member" },
    h("div", { class: "grow" },
      h("span", { class: `badge ${tone}` }, word), ownerTag(invite),
      h("p", { class: "sub" }, "made by ", madeBy(invite), " · ", when(invite), invite.times_used > 1 && ` · used ${invite.times_used} times`)),
    isOwner && !invite.active && h("button", { class: "plain small", onclick: () => reopen(invite) }, "Re-open"),
    isOwner && invite.active && h("button", { class: "plain small warn", onclick: () => revoke(invite) }, "Revoke"));
}

function state(invite) {
  if (invite.active) return ["Open", "good"];
  if (invite.used_by) return [`Used by ${byUsername(invite.used_by)}`, "calm"];
  return ["Ended", "wait"];
}

/** An invite that was used still has its time to run: that says nothing any more. */
function when(invite) {
  if (invite.active) return ["ends ", time(invite.expires_at)];
  return invite.used_by ? ["used ", time(invite.used_at)] : ["ended ", time(invite.expires_at)];
}

function madeBy(invite) {
  return person(invite.created_by, invite.organization_id);
}

/** What a row depends on. */
export function inviteStamp(invite) {
  return [invite, state(invite), madeBy(invite), owner(invite)];
}

function reopen(invite) {
  dialog("Open the invite again", (close) => form({
    fields: [h("p", {}, "The same code works once more. Whoever has it can join."), term()],
    action: "Re-open", cancel: close,
    async send(values) {
      const { code: _, ...opened } = await call("POST", `/invites/${invite.id}/reopen`, body(values));
      invites.put(opened);
      close();
      toast("The invite is open again");
    },
  }));
}

function revoke(invite) {
  confirm({
    title: "Revoke this invite?", text: "Its code stops working at once.", action: "Revoke invite",
    async send() {
      await call("DELETE", `/invites/${invite.id}`);
      invites.refresh(invite.id);
    },
  });
}
