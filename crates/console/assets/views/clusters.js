// The clusters that the caller can use, and the form to create one.

import { creator } from "../api.js";
import { h, keyed, put, toast } from "../dom.js";
import { amounts, dialog, field, form } from "../form.js";
import { pairs } from "../format.js";
import { clusters as collection } from "../live.js";
import { clusterCard, empty, failure, head } from "../parts.js";
import { owner } from "../people.js";

export function clusters() {
  const search = h("input", { type: "search", placeholder: "Filter by name, provider, region or label", "aria-label": "Filter clusters", oninput: update });
  const cards = h("div", { class: "cards" });
  const create = () => h("button", { class: "primary", "data-new": true, onclick: clusterCreate }, "New cluster");
  const node = h("div", {}, head("Clusters", { actions: create() }), h("div", { class: "filters" }, search), cards);

  function update() {
    if (!collection.loaded) return put(cards, collection.problem ? failure(collection.problem, () => collection.load()) : h("p", { class: "loading" }, "Loading…"));
    const query = search.value.trim().toLowerCase();
    const shown = collection.all.filter((cluster) => !query || text(cluster).includes(query)).sort((a, b) => a.name.localeCompare(b.name));
    keyed(cards, shown, (cluster) => cluster.id, clusterCard, (cluster) => [cluster, owner(cluster)]);
    if (shown.length) return;
    put(cards, collection.all.length ? empty("No cluster matches", "Try a shorter filter.") : empty("No clusters yet", "A cluster provides capacity to run deployments.", create()));
  }

  return { title: "Clusters", node, update };
}

function text(cluster) {
  return [cluster.name, cluster.status, cluster.provider, cluster.cloud_provider, cluster.region, owner(cluster), ...Object.entries(cluster.labels ?? {}).flat()].join(" ").toLowerCase();
}

function clusterCreate() {
  const capacity = amounts("capacity", "Capacity", [["cpu", "4"], ["ram", "8Gi"]]);
  const create = creator("/clusters");
  dialog("New cluster", (close) => form({
    fields: [
      field({ name: "name", label: "Name", required: true, autocomplete: "off", spellcheck: "false", hint: "Lower-case letters, digits and dashes." }),
      capacity.node,
      field({
        name: "provider", label: "Provider", as: "select", value: "",
        options: [["", "This machine (default)"], ["agent", "Remote agent"], ["kubernetes", "Kubernetes"], ["terraform", "Terraform"]],
      }),
      h("details", {}, h("summary", {}, "Location and labels"),
        field({ name: "cloud_provider", label: "Cloud provider", autocomplete: "off", placeholder: "aws" }),
        field({ name: "region", label: "Region", autocomplete: "off", placeholder: "us-east-1" }),
        field({ name: "labels", label: "Labels", as: "textarea", rows: 2, placeholder: "team=web", hint: "One key=value per line." })),
    ],
    action: "Create cluster", cancel: close,
    async send({ name, provider, cloud_provider, region, labels }) {
      const created = await create({
        name: name.trim(), capacity: capacity.values(),
        ...(provider && { provider }), ...(cloud_provider.trim() && { cloud_provider: cloud_provider.trim() }),
        ...(region.trim() && { region: region.trim() }), ...(labels.trim() && { labels: pairs(labels) }),
      });
      collection.put(created);
      close();
      toast(`Cluster ${created.name} created`);
      location.hash = `#/clusters/${created.id}`;
    },
  }));
}
