// The shell around every view: navigation, connection, account, keyboard shortcuts.

import { call, session, sessionEnd, sessionStart } from "./api.js";
import { h, icon, put, toast } from "./dom.js";
import { dialog, field, form } from "./form.js";
import { changed, log, onChange, organizations } from "./live.js";

const PLACES = [
  ["overview", "Overview", "o"],
  ["clusters", "Clusters", "c"],
  ["deployments", "Deployments", "d"],
  ["events", "Events", "e"],
  ["organization", "Organization", "m"],
];

/** Builds the shell; views are shown in `main`. */
export function shell() {
  const main = h("main", { id: "main", tabindex: "-1" });
  const links = PLACES.map(([name, label, key]) =>
    h("a", { href: `#/${name}`, "data-place": name, title: `${label} (g ${key})` }, icon(name), h("span", {}, label)));
  const state = h("p", { class: "connection", role: "status" });
  const organization = h("span", { class: "org" });
  const name = h("span", { class: "account-name" });
  const node = h("div", { class: "shell" },
    h("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
    h("div", { class: "side" },
      h("a", { class: "brand", href: "#/overview" }, h("img", { src: "/assets/icon.svg", alt: "", width: 28, height: 28 }), h("span", {}, "Paddock", organization)),
      h("nav", { "aria-label": "Main" }, links),
      h("div", { class: "side-end" },
        state,
        h("a", { class: "quiet-link", href: "/docs" }, icon("docs"), h("span", {}, "API")),
        h("button", { class: "account", onclick: account }, h("span", { class: "avatar", "aria-hidden": "true" }, session.user.username.slice(0, 1).toUpperCase()), name),
        h("button", { class: "quiet", "aria-label": "Sign out", title: "Sign out", onclick: signOut }, icon("exit")))),
    main);
  onChange(() => {
    const text = log.state === "live" ? "Live" : "Reconnecting…";
    if (state.textContent !== text) put(state, text).className = `connection ${log.state}`;
    label(organization, organizations.get(session?.user.organization_id)?.name ?? "");
    nameAccount(name);
  });
  nameAccount(name);
  keyboard();
  return {
    node, main,
    mark(place) {
      for (const link of links) {
        if (link.dataset.place === place) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
  };
}

/** Sets a text that may be truncated; the tooltip shows all of it. */
function label(node, text) {
  if (node.textContent !== text) put(node, text).title = text;
}

function nameAccount(node) {
  if (!session) return;
  const { display_name, username } = session.user;
  label(node, display_name || username);
  node.parentElement.title = `${display_name || username} (${username}): account`;
}

async function signOut() {
  await call("POST", "/logout").catch(() => {});
  location.hash = "";
  sessionEnd();
}

function account() {
  const { user } = session;
  dialog("Your account", (close) => form({
    fields: [
      h("p", { class: "hint" }, `Signed in as ${user.username}. Leave the passwords empty to keep your password; changing it ends all your sessions.`),
      h("input", { type: "text", hidden: true, autocomplete: "username", value: user.username, "aria-hidden": "true" }),
      field({ name: "display_name", label: "Display name", value: user.display_name ?? "", autocomplete: "name" }),
      field({ name: "current_password", label: "Current password", type: "password", autocomplete: "current-password" }),
      field({ name: "password", label: "New password", type: "password", autocomplete: "new-password" }),
    ],
    action: "Save", cancel: close,
    async send({ display_name, current_password, password }) {
      const next = await call("PATCH", "/users/me", { display_name, ...(password && { password, current_password }) });
      if (password) return sessionEnd("Your password was changed, which ended all your sessions. Sign in with the new password.");
      sessionStart({ ...session, user: next });
      changed();
      close();
      toast("Saved");
    },
  }));
}

/** Keyboard shortcuts: `g` and a letter navigates, `/` searches, `n` creates, `?` shows the help. */
function keyboard() {
  let lastG = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const place = Date.now() - lastG < 1500 && PLACES.find(([, , key]) => key === event.key);
    lastG = event.key === "g" ? Date.now() : 0;
    if (place) location.hash = `#/${place[0]}`;
    else if (event.key === "?") help();
    else if (event.key === "/") document.querySelector("main [type=search]")?.focus();
    else if (event.key === "n") document.querySelector("main [data-new]")?.click();
    else return;
    event.preventDefault();
  });
}

function help() {
  const rows = [...PLACES.map(([, label, key]) => [`g ${key}`, label]), ["/", "Search the list"], ["n", "New"], ["Esc", "Close a dialog"], ["?", "Show this help"]];
  dialog("Keyboard shortcuts", () => h("dl", { class: "keys" }, rows.map(([keys, action]) =>
    h("div", {}, h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, action)))));
}
