// The clusters that the caller can use, and making a new one.

import { creator } from "../api.js";
import { h, keyed, put, toast } from "../dom.js";
import { amounts, dialog, field, form } from "../form.js";
import { pairs } from "../format.js";
import { clusters as known } from "../live.js";
import { clusterCard, empty, failure, head } from "../parts.js";
import { owner } from "../people.js";

export function clusters() {
  const search = h("input", { type: "search", placeholder: "Filter by name, provider, region or label", "aria-label": "Filter clusters", oninput: update });
  const cards = h("div", { class: "cards" });
  const create = () => h("button", { class: "primary", "data-new": true, onclick: clusterCreate }, "New cluster");
  const node = h("div", {}, head("Clusters", { actions: create() }), h("div", { class: "filters" }, search), cards);

  function update() {
    if (!known.loaded) return put(cards, known.problem ? failure(known.problem, () => known.load()) : h("p", { class: "loading" }, "Loading…"));
    const wanted = search.value.trim().toLowerCase();
    const shown = known.all.filter((one) => !wanted || text(one).includes(wanted)).sort((a, b) => a.name.localeCompare(b.name));
    keyed(cards, shown, (one) => one.id, clusterCard, (one) => [one, owner(one)]);
    if (shown.length) return;
    put(cards, known.all.length ? empty("No cluster matches", "Try fewer letters.") : empty("No clusters yet", "A cluster is a place with capacity where deployments run.", create()));
  }

  return { title: "Clusters", node, update };
}

function text(one) {
  return [one.name, one.status, one.provider, one.cloud_provider, one.region, owner(one), ...Object.entries(one.labels ?? {}).flat()].join(" ").toLowerCase();
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
        options: [["", "This machine (default)"], ["agent", "An agent that you run"], ["kubernetes", "Kubernetes"], ["terraform", "Terraform"]],
      }),
      h("details", {}, h("summary", {}, "Place and labels"),
        field({ name: "cloud_provider", label: "Cloud provider", autocomplete: "off", placeholder: "aws" }),
        field({ name: "region", label: "Region", autocomplete: "off", placeholder: "us-east-1" }),
        field({ name: "labels", label: "Labels", as: "textarea", rows: 2, placeholder: "team=web", hint: "One key=value per line." })),
    ],
    action: "Create cluster", cancel: close,
    async send({ name, provider, cloud_provider, region, labels }) {
      const made = await create({
        name: name.trim(), capacity: capacity.values(),
        ...(provider && { provider }), ...(cloud_provider.trim() && { cloud_provider: cloud_provider.trim() }),
        ...(region.trim() && { region: region.trim() }), ...(labels.trim() && { labels: pairs(labels) }),
      });
      known.put(made);
      close();
      toast(`Cluster ${made.name} is created`);
      location.hash = `#/clusters/${made.id}`;
    },
  }));
}
