// One deployment: what it is, how it is and why, and how it got there.

import { call, list } from "../api.js";
import { announce, copyButton, h, keyed, put, toast } from "../dom.js";
import { confirm, dialog, field, form } from "../form.js";
import { pairs, quantities, sentence } from "../format.js";
import { clusters, deployments, log } from "../live.js";
import { badge, empty, eventReason, eventTitle, eventTone, facts, failure, head, labels, time } from "../parts.js";
import { owner, person } from "../people.js";

export function deployment(id) {
  const top = h("div");
  const line = h("ol", { class: "timeline" });
  const node = h("div", {}, top, h("section", { class: "panel" }, h("h2", {}, "History"), line));
  let past = null;
  let shown = null;
  let said = null;

  function update() {
    const one = deployments.get(id);
    node.classList.toggle("bare", !one);
    if (!one) {
      shown = null;
      return put(top, deployments.problem ? failure(deployments.problem, () => deployments.load()) : deployments.loaded ? gone() : h("p", { class: "loading" }, "Loading…"));
    }
    const mark = JSON.stringify([one, clusters.get(one.cluster_id)?.name, owner(one), madeBy(one)]);
    if (shown !== mark) put(top, about(one));
    shown = mark;
    document.title = `${one.name || one.id} · Paddock`;
    if (said && said !== one.status) announce(`${one.name}: ${sentence(one.status)}. ${one.status_reason ?? ""}`);
    said = one.status;
    steps();
  }

  function steps() {
    if (!past) return put(line, h("li", { class: "none" }, "Loading…"));
    const live = log.events.filter((event) => event.subject === id);
    const all = [...new Map([...past, ...live].map((event) => [event.seq, event])).values()].sort((a, b) => b.seq - a.seq);
    keyed(line, all, (event) => event.seq, step, (event) => [event.seq, actor(event)]);
    if (!all.length) put(line, h("li", { class: "none" }, "Nothing is recorded yet."));
  }

  deployments.refresh(id);
  list(`/deployments/${encodeURIComponent(id)}/history`).then(({ items }) => items, () => []).then((items) => {
    past = items;
    update();
  });
  return { title: "Deployment", node, update };
}

function gone() {
  return empty("This deployment does not exist", "It may have been deleted, or it belongs to someone else.", h("a", { class: "button plain", href: "#/deployments" }, "All deployments"));
}

function actor(event) {
  return person(event.actor, event.organization_id);
}

function madeBy(one) {
  return person(one.created_by, one.organization_id);
}

function step(event) {
  const reason = eventReason(event);
  return h("li", { class: eventTone(event) },
    h("div", { class: "row-head" }, h("b", {}, eventTitle(event)), h("span", { class: "side-note" }, time(event.at), event.actor && ` · ${actor(event)}`)),
    reason && h("p", { class: "reason" }, reason));
}

function about(one) {
  const cluster = clusters.get(one.cluster_id);
  return [
    head(one.name || one.id, {
      back: ["#/deployments", "Deployments"],
      below: h("div", { class: "state" }, badge(one.status), one.status_reason && h("p", { class: "reason" }, one.status_reason)),
      actions: one.status !== "deleting" && [
        h("button", { class: "plain", onclick: () => edit(one) }, "Edit"),
        h("button", { class: "plain warn", onclick: () => remove(one) }, "Delete"),
      ],
    }),
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Runs"), facts([
        ["Image", one.image ? h("code", {}, one.image) : "none: it only holds its capacity"],
        ["Cluster", cluster ? h("a", { href: `#/clusters/${cluster.id}` }, cluster.name) : one.cluster_id ?? "not chosen yet"],
        ["Node", one.node],
        ["Needs", quantities(one.resources)],
        ["Priority", one.priority],
        ["Replicas", one.replicas],
        ["Command", one.command?.length > 0 && h("code", {}, one.command.join(" "))],
        ["Ports", one.ports?.length > 0 && one.ports.map(portText).join(", ")],
        ["Endpoints", one.endpoints?.length > 0 && one.endpoints.map((at) => h("span", { class: "copyable" }, h("code", {}, at), copyButton(at, "Copy the endpoint")))],
        ["Environment", environment(one.env)],
      ])),
      h("section", { class: "panel" }, h("h2", {}, "About"), facts([
        ["Organization", owner(one)],
        ["Created", [time(one.created_at), one.created_by && ` by ${madeBy(one)}`]],
        ["Started", one.started_at && time(one.started_at)],
        ["Changed", time(one.updated_at)],
        ["Labels", labels(one.labels)],
        ["Id", h("span", { class: "copyable" }, h("code", {}, one.id), copyButton(one.id, "Copy the id"))],
      ]))),
  ];
}

function portText(port) {
  return typeof port === "object" ? Object.values(port).join("/") : String(port);
}

/** Values stay folded: some are secrets, and screens are shared. */
function environment(env) {
  const all = Object.entries(env ?? {});
  if (!all.length) return null;
  return h("details", {}, h("summary", {}, all.map(([name]) => name).join(", ")), h("pre", {}, all.map((pair) => pair.join("=")).join("\n")));
}

function edit(one) {
  dialog(`Edit ${one.name || one.id}`, (close) => form({
    fields: [
      field({ name: "name", label: "Name", required: true, value: one.name ?? "", spellcheck: "false" }),
      field({ name: "priority", label: "Priority", type: "number", step: 1, required: true, value: one.priority, hint: "Higher goes first and may displace lower." }),
      field({ name: "labels", label: "Labels", as: "textarea", rows: 3, hint: "One key=value per line.", value: Object.entries(one.labels ?? {}).map((pair) => pair.join("=")).join("\n") }),
    ],
    action: "Save", cancel: close,
    async send({ name, priority, labels }) {
      deployments.put(await call("PATCH", `/deployments/${one.id}`, { name: name.trim(), priority: Number(priority), labels: pairs(labels) }));
      close();
      toast("Saved");
    },
  }));
}

function remove(one) {
  confirm({
    title: `Delete ${one.name || "this deployment"}?`,
    text: "It stops, and its capacity is free for others. This can't be undone.",
    action: "Delete deployment",
    async send() {
      const left = await call("DELETE", `/deployments/${one.id}`);
      if (left?.id) deployments.put(left);
      toast(`${one.name || "The deployment"} is being deleted`);
      location.hash = "#/deployments";
    },
  });
}
