// Sign-in, creating an organization, and joining one with an invite.

import { call, sessionEndReason, sessionStart } from "../api.js";
import { h, put } from "../dom.js";
import { field, form } from "../form.js";
import { ago } from "../format.js";

const TABS = [["sign-in", "Sign in"], ["create", "New organization"], ["invite", "Use an invite"]];

/** The page without a session; `done` runs after sign-in. */
export function signIn(done) {
  const invited = /^#\/invite\/(.+)$/.exec(location.hash)?.[1];
  const endReason = sessionEndReason();
  const panel = h("div", { id: "panel", role: "tabpanel" });
  const forms = { "sign-in": () => signInForm(enter), create: () => createForm(enter), invite: () => inviteForm(enter, decodeURIComponent(invited ?? "")) };
  const tabs = TABS.map(([name, label]) => h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => choose(name) }, label));

  function choose(name) {
    TABS.forEach(([other], at) => {
      tabs[at].setAttribute("aria-selected", String(other === name));
      tabs[at].tabIndex = other === name ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    put(panel, forms[name]());
    panel.querySelector("input:not([value]), input")?.focus();
  }

  async function enter(username, password) {
    sessionStart(await call("POST", "/login", { username, password }));
    if (invited) location.hash = "";
    done();
  }

  const tabList = h("div", { class: "tabs", role: "tablist", "aria-label": "Sign-in method", onkeydown: arrows }, tabs);
  function arrows({ key }) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    choose(TABS[next][0]);
    tabs[next].focus();
  }

  queueMicrotask(() => choose(invited ? "invite" : "sign-in"));
  return h("main", { class: "entrance" },
    h("div", { class: "entrance-card" },
      h("header", {}, h("img", { src: "/assets/icon.svg", alt: "", width: 44, height: 44 }), h("h1", {}, "Paddock"), h("p", {}, "Clusters, deployments and services for your teams.")),
      endReason && h("p", { class: "note", role: "status" }, endReason),
      tabList, panel),
    h("p", { class: "entrance-foot" }, h("a", { href: "/docs" }, "API documentation")));
}

function credentials(prefix, isNew) {
  return [
    field({ name: `${prefix}username`, label: "Username", required: true, autocomplete: "username", autocapitalize: "off", spellcheck: "false" }),
    field({ name: `${prefix}password`, label: "Password", type: "password", required: true, autocomplete: isNew ? "new-password" : "current-password" }),
    isNew && field({ name: `${prefix}display_name`, label: "Display name", autocomplete: "name" }),
  ];
}

function signInForm(enter) {
  return form({ fields: credentials("", false), action: "Sign in", send: ({ username, password }) => enter(username, password) });
}

function createForm(enter) {
  return form({
    fields: [field({ name: "name", label: "Organization", required: true, autocomplete: "organization", hint: "You become its owner." }), ...credentials("owner.", true)],
    action: "Create organization",
    async send(values) {
      const owner = account(values, "owner.");
      await call("POST", "/organizations", { name: values.name, owner });
      await enter(owner.username, owner.password);
    },
  });
}

function inviteForm(enter, code) {
  const state = h("p", { class: "note", role: "status", hidden: true });
  const input = field({ name: "code", label: "Invite code", required: true, value: code, autocomplete: "off", autocapitalize: "off", spellcheck: "false", onchange: (event) => check(event.target.value.trim(), state) });
  if (code) check(code, state);
  return form({
    fields: [input, state, ...credentials("", true)],
    action: "Join",
    async send(values) {
      const user = account(values, "");
      await call("POST", "/invites/redeem", { code: values.code.trim(), ...user });
      await enter(user.username, user.password);
    },
  });
}

async function check(code, state) {
  state.hidden = !code;
  if (!code) return;
  try {
    const invite = await call("POST", "/invites/check", { code });
    const name = invite.organization?.name ?? invite.organization;
    put(state, invite.active ? `You will join ${name}. The invite expires ${ago(invite.expires_at)}.`
      : invite.used_by ? `This invite was used by ${invite.used_by}. Ask for a new one.`
      : invite.expired ? "This invite has expired. Ask an owner to reopen it."
      : "This invite is no longer valid. Ask for a new one.");
  } catch (problem) {
    put(state, problem.message);
  }
}

function account(values, prefix) {
  const display_name = values[`${prefix}display_name`].trim();
  return { username: values[`${prefix}username`].trim(), password: values[`${prefix}password`], ...(display_name && { display_name }) };
}
