// Starts the console and routes the URL's hash to a view.

import { session, sessionStart, call } from "./api.js";
import { announce, h, put } from "./dom.js";
import * as live from "./live.js";
import { empty, tick } from "./parts.js";
import { shell } from "./shell.js";
import { cluster } from "./views/cluster.js";
import { clusters } from "./views/clusters.js";
import { deployment } from "./views/deployment.js";
import { deployments } from "./views/deployments.js";
import { events } from "./views/events.js";
import { organization } from "./views/organization.js";
import { overview } from "./views/overview.js";
import { signIn } from "./views/sign_in.js";

const TICK_MS = 10_000;

/** A view returns `{title, node, update}`; `update` runs after every change of the data. */
const ROUTES = [
  [/^$/, overview],
  [/^overview$/, overview],
  [/^clusters$/, clusters],
  [/^clusters\/([^/]+)$/, cluster],
  [/^deployments$/, deployments],
  [/^deployments\/([^/]+)$/, deployment],
  [/^events$/, events],
  [/^organization$/, organization],
  [/^invite\/.*$/, overview],
];

const root = document.getElementById("app");

function start() {
  const frame = shell();
  let view = null;
  put(root, frame.node);
  live.onChange(() => view?.update?.());
  live.start();
  setInterval(tick, TICK_MS);
  refreshUser();

  function route(first) {
    const path = decodeURIComponent(location.hash.replace(/^#\/?/, "").split("?")[0]);
    const [pattern, build] = ROUTES.find(([pattern]) => pattern.test(path)) ?? [/^/, notFound];
    view = build(...(pattern.exec(path)?.slice(1) ?? []));
    frame.mark(path.split("/")[0] || "overview");
    document.title = `${view.title} · Paddock`;
    put(frame.main, view.node);
    view.update?.();
    window.scrollTo(0, 0);
    if (first === true) return;
    announce(view.title);
    frame.main.querySelector("h1")?.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", route);
  route(true);
}

function notFound() {
  return { title: "Not found", node: empty("Page not found", "No page has this address.", h("a", { class: "button plain", href: "#/overview" }, "Go to the overview")) };
}

/** Updates the session's user: the role may have changed since login. */
async function refreshUser() {
  const user = await call("GET", "/users/me").catch(() => null);
  if (user) sessionStart({ ...session, user });
}

if (session) start();
else put(root, signIn(start));
