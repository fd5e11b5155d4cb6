// One cluster: its state, what it has left, and what runs there.

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
  let shown = null;

  function update() {
    const one = clusters.get(id);
    if (!one) {
      shown = null;
      node.classList.add("bare");
      return put(top, clusters.problem ? failure(clusters.problem, () => clusters.load()) : clusters.loaded ? gone() : h("p", { class: "loading" }, "Loading…"));
    }
    node.classList.remove("bare");
    const mark = JSON.stringify([one, owner(one), madeBy(one)]);
    if (shown !== mark) put(top, about(one));
    shown = mark;
    document.title = `${one.name} · Paddock`;
    const mine = deployments.all.filter((deployment) => deployment.cluster_id === id).sort((a, b) => b.priority - a.priority);
    put(title, "Deployments", h("span", { class: "number" }, mine.length));
    running.body.parentElement.hidden = !mine.length;
    keyed(running.body, mine, (deployment) => deployment.id, deploymentRow, deploymentStamp);
  }

  clusters.refresh(id);
  return { title: "Cluster", node, update };
}

function gone() {
  return empty("This cluster does not exist", "It may have been deleted, or it belongs to someone else.", h("a", { class: "button plain", href: "#/clusters" }, "All clusters"));
}

/** Shared clusters belong to the platform; the others to their organization. */
function mayChange(one) {
  return isPlatform() || (!one.shared && one.organization_id === session.user.organization_id);
}

function madeBy(one) {
  return person(one.created_by, one.organization_id);
}

function about(one) {
  return [
    head(one.name, {
      back: ["#/clusters", "Clusters"],
      below: h("div", { class: "state" }, badge(one.status), one.status_reason && h("p", { class: "reason" }, one.status_reason)),
      actions: [
        mayChange(one) && h("button", { class: "plain", onclick: () => edit(one) }, "Edit"),
        mayChange(one) && h("button", { class: "plain warn", onclick: () => remove(one) }, "Delete"),
        h("button", { class: "primary", "data-new": true, onclick: () => deploymentCreate(one.id) }, "Deploy here"),
      ],
    }),
    h("div", { class: "columns" },
      h("section", { class: "panel" }, h("h2", {}, "Capacity"), bars(one.capacity)),
      h("section", { class: "panel" }, h("h2", {}, "About"), facts([
        ["Owner", one.shared ? "Shared by everyone" : isPlatform() ? owner(one) : "Your organization"],
        ["Provider", one.provider],
        ["Place", [one.cloud_provider, one.region].filter(Boolean).join(" · ")],
        ["Labels", labels(one.labels)],
        ["Created", [time(one.created_at), one.created_by && ` by ${madeBy(one)}`]],
        ["Changed", time(one.updated_at)],
        ["Id", h("span", { class: "copyable" }, h("code", {}, one.id), copyButton(one.id, "Copy the id"))],
      ]))),
  ];
}

function edit(one) {
  const platform = isPlatform();
  const totals = Object.entries(one.capacity).map(([kind, { total }]) => [kind, exact(kind, total)]);
  const capacity = amounts("capacity", "Capacity", totals);
  dialog(`Edit ${one.name}`, (close) => form({
    fields: [
      field({ name: "name", label: "Name", required: true, value: one.name, spellcheck: "false" }),
      field({ name: "labels", label: "Labels", as: "textarea", rows: 3, hint: "One key=value per line.", value: Object.entries(one.labels ?? {}).map((pair) => pair.join("=")).join("\n") }),
      platform && capacity.node,
    ],
    action: "Save", cancel: close,
    async send({ name, labels }) {
      const changed = platform && JSON.stringify(Object.entries(capacity.values())) !== JSON.stringify(totals);
      clusters.put(await call("PATCH", `/clusters/${one.id}`, { name: name.trim(), labels: pairs(labels), ...(changed && { capacity: capacity.values() }) }));
      close();
      toast("Saved");
    },
  }));
}

function remove(one) {
  const held = one.deployments ? ` It still has ${count(one.deployments, "deployment")}: delete them first.` : "";
  confirm({
    title: `Delete ${one.name}?`,
    text: `The cluster and its capacity go away. This can't be undone.${held}`,
    action: "Delete cluster", typed: one.name,
    async send() {
      const left = await call("DELETE", `/clusters/${one.id}`);
      if (left?.id) clusters.put(left);
      toast(`Cluster ${one.name} is being deleted`);
      location.hash = "#/clusters";
    },
  });
}
