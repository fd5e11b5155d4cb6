// One cluster: status, capacity and deployments.

import { call, session } from "../api.js";
import { copyButton, h, keyed, put, toast } from "../dom.js";
import { amounts, confirm, dialog, field, form } from "../form.js";
import { count, exact, pairs } from "../format.js";
import { clusters, deployments } from "../live.js";
import { badge, bars, empty, facts, failure, head, labels, time } from "../parts.js";
import { isPlatform, owner, person } from "../people.js";
import { deploymentCreate } from "./deployment_form.js";
import { deploymentRow, deploymentStamp, deploymentTable } from "./deployments.js";

export function cluster(id) {
  const top = h("div");
  const running = deploymentTable("of-cluster");
  const title = h("h2");
  const node = h("div", {}, top, h("section", {}, title, running.node));
  let rendered = null;

  function update() {
    const cluster = clusters.get(id);
    if (!cluster) {
      rendered = null;
      node.classList.add("bare");
      return put(top, clusters.problem ? failure(clusters.problem, () => clusters.load()) : clusters.loaded ? notFound() : h("p", { class: "loading" }, "Loading…"));
    }
    node.classList.remove("bare");
    const mark = JSON.stringify([cluster, owner(cluster), createdBy(cluster)]);
    if (rendered !== mark) put(top, about(cluster));
    rendered = mark;
    document.title = `${cluster.name} · Paddock`;
    const mine = deployments.all.filter((deployment) => deployment.cluster_id === id).sort((a, b) => b.priority - a.priority);
    put(title, "Deployments", h("span", { class: "number" }, mine.length));
    running.body.parentElement.hidden = !mine.length;
    keyed(running.body, mine, (deployment) => deployment.id, deploymentRow, deploymentStamp);
  }

  clusters.refresh(id);
  return { title: "Cluster", node, update };
}

function notFound() {
  return empty("Cluster not found", "It was deleted or belongs to another organization.", h("a", { class: "button plain", href: "#/clusters" }, "All clusters"));
}

/** Shared clusters belong to the platform, all others to their organization. */
function mayChange(cluster) {
  return isPlatform() || (!cluster.shared && cluster.organization_id === session.user.organization_id);
}

function createdBy(cluster) {
  return person(cluster.created_by, cluster.organization_id);
}

function about(cluster) {
  return [
    head(cluster.name, {
      back: ["#/clusters", "Clusters"],
      below: h("div", { class: "state" }, badge(cluster.status), cluster.status_reason && h("p", { class: "reason" }, cluster.status_reason)),
      actions: [
        mayChange(cluster) && h("button", { class: "plain", onclick: () => edit(cluster) }, "Edit"),
        mayChange(cluster) && h("button", { class: "plain warn", onclick: () => remove(cluster) }, "Delete"),
        h("button", { class: "primary", "data-new": true, onclick: () => deploymentCreate(cluster.id) }, "Deploy here"),
      ],
    }),
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Capacity"), bars(cluster.capacity)),
      h("section", { class: "panel" }, h("h2", {}, "About"), facts([
        ["Owner", cluster.shared ? "Shared by all organizations" : isPlatform() ? owner(cluster) : "Your organization"],
        ["Provider", cluster.provider],
        ["Location", [cluster.cloud_provider, cluster.region].filter(Boolean).join(" · ")],
        ["Labels", labels(cluster.labels)],
        ["Created", [time(cluster.created_at), cluster.created_by && ` by ${createdBy(cluster)}`]],
        ["Updated", time(cluster.updated_at)],
        ["Id", h("span", { class: "copyable" }, h("code", {}, cluster.id), copyButton(cluster.id, "Copy id"))],
      ]))),
  ];
}

function edit(cluster) {
  const platform = isPlatform();
  const totals = Object.entries(cluster.capacity).map(([kind, { total }]) => [kind, exact(kind, total)]);
  const capacity = amounts("capacity", "Capacity", totals);
  dialog(`Edit ${cluster.name}`, (close) => form({
    fields: [
      field({ name: "name", label: "Name", required: true, value: cluster.name, spellcheck: "false" }),
      field({ name: "labels", label: "Labels", as: "textarea", rows: 3, hint: "One key=value per line.", value: Object.entries(cluster.labels ?? {}).map((pair) => pair.join("=")).join("\n") }),
      platform && capacity.node,
    ],
    action: "Save", cancel: close,
    async send({ name, labels }) {
      const changed = platform && JSON.stringify(Object.entries(capacity.values())) !== JSON.stringify(totals);
      clusters.put(await call("PATCH", `/clusters/${cluster.id}`, { name: name.trim(), labels: pairs(labels), ...(changed && { capacity: capacity.values() }) }));
      close();
      toast("Saved");
    },
  }));
}

function remove(cluster) {
  const blocked = cluster.deployments ? ` It still has ${count(cluster.deployments, "deployment")}: delete them first.` : "";
  confirm({
    title: `Delete ${cluster.name}?`,
    text: `Deletes the cluster and its capacity. This can't be undone.${blocked}`,
    action: "Delete cluster", typed: cluster.name,
    async send() {
      const deleting = await call("DELETE", `/clusters/${cluster.id}`);
      if (deleting?.id) clusters.put(deleting);
      toast(`Cluster ${cluster.name} is being deleted`);
      location.hash = "#/clusters";
    },
  });
}
