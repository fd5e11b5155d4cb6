// The form that creates a deployment.

import { creator } from "../api.js";
import { h, toast } from "../dom.js";
import { amounts, dialog, field, form } from "../form.js";
import { pairs, splitCommand } from "../format.js";
import { clusters, deployments } from "../live.js";
import { owner } from "../people.js";

/** Opens the form, with `cluster` preselected. */
export function deploymentCreate(cluster = "") {
  const resources = amounts("resources", "Resources", [["cpu", "1"], ["ram", "512Mi"]]);
  const options = clusters.all.sort((a, b) => a.name.localeCompare(b.name)).map((cluster) => [cluster.id, clusterLabel(cluster)]);
  const create = creator("/deployments");
  dialog("New deployment", (close) => form({
    fields: [
      field({ name: "name", label: "Name", autocomplete: "off", spellcheck: "false", placeholder: "web" }),
      field({ name: "image", label: "Image", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "registry.example/team/web:3", hint: "Without an image the deployment only reserves capacity." }),
      field({ name: "cluster_id", label: "Cluster", as: "select", value: cluster, options: [["", "Any cluster with free capacity"], ...options] }),
      resources.node,
      h("div", { class: "pair" },
        field({ name: "priority", label: "Priority", type: "number", step: 1, placeholder: "0", hint: "Higher priorities are placed first and may preempt lower ones." }),
        field({ name: "replicas", label: "Replicas", type: "number", min: 1, step: 1, placeholder: "1" })),
      h("details", {}, h("summary", {}, "Command, ports, environment, labels"),
        field({ name: "command", label: "Command", spellcheck: "false", autocomplete: "off", placeholder: "serve --port 8080" }),
        field({ name: "ports", label: "Ports", inputmode: "numeric", autocomplete: "off", placeholder: "8080, 9090" }),
        field({ name: "env", label: "Environment", as: "textarea", rows: 3, spellcheck: "false", placeholder: "LOG_LEVEL=info", hint: "One NAME=value per line." }),
        field({ name: "labels", label: "Labels", as: "textarea", rows: 2, spellcheck: "false", placeholder: "team=web", hint: "One key=value per line." })),
    ],
    action: "Deploy", cancel: close,
    async send(values) {
      const created = await create({ ...request(values), resources: resources.values() });
      deployments.put(created);
      close();
      toast(`${created.name || "Deployment"} accepted`);
      location.hash = `#/deployments/${created.id}`;
    },
  }));
}

function clusterLabel(cluster) {
  const ownerName = cluster.shared ? "shared" : owner(cluster);
  return ownerName ? `${cluster.name} (${ownerName})` : cluster.name;
}

/** Sends only fields that are filled in; the server applies the defaults. */
function request({ name, image, cluster_id, priority, replicas, command, ports, env, labels }) {
  const fields = {
    name: name.trim(), image: image.trim(), cluster_id,
    priority: priority.trim() && Number(priority),
    replicas: replicas.trim() && Number(replicas),
    command: command.trim() && splitCommand(command),
    ports: ports.trim() && ports.split(/[\s,]+/).filter(Boolean).map((port) => Number(port) || port),
    env: env.trim() && pairs(env),
    labels: labels.trim() && pairs(labels),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
