// One deployment: spec, status with reason, and history.

import { call, list } from "../api.js";
import { announce, copyButton, h, keyed, put, toast } from "../dom.js";
import { confirm, dialog, field, form } from "../form.js";
import { humanize, pairs, quantities } from "../format.js";
import { clusters, deployments, log } from "../live.js";
import { badge, empty, eventReason, eventTitle, eventTone, facts, failure, head, labels, time } from "../parts.js";
import { owner, person } from "../people.js";

export function deployment(id) {
  const top = h("div");
  const timeline = h("ol", { class: "timeline" });
  const node = h("div", {}, top, h("section", { class: "panel" }, h("h2", {}, "History"), timeline));
  let history = null;
  let rendered = null;
  let lastStatus = null;

  function update() {
    const deployment = deployments.get(id);
    node.classList.toggle("bare", !deployment);
    if (!deployment) {
      rendered = null;
      return put(top, deployments.problem ? failure(deployments.problem, () => deployments.load()) : deployments.loaded ? notFound() : h("p", { class: "loading" }, "Loading…"));
    }
    const mark = JSON.stringify([deployment, clusters.get(deployment.cluster_id)?.name, owner(deployment), createdBy(deployment)]);
    if (rendered !== mark) put(top, about(deployment));
    rendered = mark;
    document.title = `${deployment.name || deployment.id} · Paddock`;
    if (lastStatus && lastStatus !== deployment.status) announce(`${deployment.name}: ${humanize(deployment.status)}. ${deployment.status_reason ?? ""}`);
    lastStatus = deployment.status;
    updateHistory();
  }

  function updateHistory() {
    if (!history) return put(timeline, h("li", { class: "none" }, "Loading…"));
    const live = log.events.filter((event) => event.subject === id);
    const all = [...new Map([...history, ...live].map((event) => [event.seq, event])).values()].sort((a, b) => b.seq - a.seq);
    keyed(timeline, all, (event) => event.seq, historyRow, (event) => [event.seq, actor(event)]);
    if (!all.length) put(timeline, h("li", { class: "none" }, "No events yet."));
  }

  deployments.refresh(id);
  list(`/deployments/${encodeURIComponent(id)}/history`).then(({ items }) => items, () => []).then((items) => {
    history = items;
    update();
  });
  return { title: "Deployment", node, update };
}

function notFound() {
  return empty("Deployment not found", "It was deleted or belongs to another organization.", h("a", { class: "button plain", href: "#/deployments" }, "All deployments"));
}

function actor(event) {
  return person(event.actor, event.organization_id);
}

function createdBy(deployment) {
  return person(deployment.created_by, deployment.organization_id);
}

function historyRow(event) {
  const reason = eventReason(event);
  return h("li", { class: eventTone(event) },
    h("div", { class: "row-head" }, h("b", {}, eventTitle(event)), h("span", { class: "side-note" }, time(event.at), event.actor && ` · ${actor(event)}`)),
    reason && h("p", { class: "reason" }, reason));
}

function about(deployment) {
  const cluster = clusters.get(deployment.cluster_id);
  return [
    head(deployment.name || deployment.id, {
      back: ["#/deployments", "Deployments"],
      below: h("div", { class: "state" }, badge(deployment.status), deployment.status_reason && h("p", { class: "reason" }, deployment.status_reason)),
      actions: deployment.status !== "deleting" && [
        h("button", { class: "plain", onclick: () => edit(deployment) }, "Edit"),
        h("button", { class: "plain warn", onclick: () => remove(deployment) }, "Delete"),
      ],
    }),
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Spec"), facts([
        ["Image", deployment.image ? h("code", {}, deployment.image) : "none (only reserves capacity)"],
        ["Cluster", cluster ? h("a", { href: `#/clusters/${cluster.id}` }, cluster.name) : deployment.cluster_id ?? "not placed yet"],
        ["Node", deployment.node],
        ["Resources", quantities(deployment.resources)],
        ["Priority", deployment.priority],
        ["Replicas", deployment.replicas],
        ["Command", deployment.command?.length > 0 && h("code", {}, deployment.command.join(" "))],
        ["Ports", deployment.ports?.length > 0 && deployment.ports.map(portText).join(", ")],
        ["Endpoints", deployment.endpoints?.length > 0 && deployment.endpoints.map((endpoint) => h("span", { class: "copyable" }, h("code", {}, endpoint), copyButton(endpoint, "Copy endpoint")))],
        ["Environment", environment(deployment.env)],
      ])),
      h("section", { class: "panel" }, h("h2", {}, "About"), facts([
        ["Organization", owner(deployment)],
        ["Created", [time(deployment.created_at), deployment.created_by && ` by ${createdBy(deployment)}`]],
        ["Started", deployment.started_at && time(deployment.started_at)],
        ["Updated", time(deployment.updated_at)],
        ["Labels", labels(deployment.labels)],
        ["Id", h("span", { class: "copyable" }, h("code", {}, deployment.id), copyButton(deployment.id, "Copy id"))],
      ]))),
  ];
}

function portText(port) {
  return typeof port === "object" ? Object.values(port).join("/") : String(port);
}

/** Values are collapsed: some are secrets, and screens are shared. */
function environment(env) {
  const all = Object.entries(env ?? {});
  if (!all.length) return null;
  return h("details", {}, h("summary", {}, all.map(([name]) => name).join(", ")), h("pre", {}, all.map((pair) => pair.join("=")).join("\n")));
}

function edit(deployment) {
  dialog(`Edit ${deployment.name || deployment.id}`, (close) => form({
    fields: [
      field({ name: "name", label: "Name", required: true, value: deployment.name ?? "", spellcheck: "false" }),
      field({ name: "priority", label: "Priority", type: "number", step: 1, required: true, value: deployment.priority, hint: "Higher priorities are placed first and may preempt lower ones." }),
      field({ name: "labels", label: "Labels", as: "textarea", rows: 3, hint: "One key=value per line.", value: Object.entries(deployment.labels ?? {}).map((pair) => pair.join("=")).join("\n") }),
    ],
    action: "Save", cancel: close,
    async send({ name, priority, labels }) {
      deployments.put(await call("PATCH", `/deployments/${deployment.id}`, { name: name.trim(), priority: Number(priority), labels: pairs(labels) }));
      close();
      toast("Saved");
    },
  }));
}

function remove(deployment) {
  confirm({
    title: `Delete ${deployment.name || "this deployment"}?`,
    text: "Stops the deployment and releases its capacity. This can't be undone.",
    action: "Delete deployment",
    async send() {
      const deleting = await call("DELETE", `/deployments/${deployment.id}`);
      if (deleting?.id) deployments.put(deleting);
      toast(`${deployment.name || "The deployment"} is being deleted`);
      location.hash = "#/deployments";
    },
  });
}
