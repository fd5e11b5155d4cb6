// The form that makes a deployment.

import { creator } from "../api.js";
import { h, toast } from "../dom.js";
import { amounts, dialog, field, form } from "../form.js";
import { pairs, words } from "../format.js";
import { clusters, deployments } from "../live.js";
import { owner } from "../people.js";

/** Opens the form; `cluster` is chosen beforehand when it is known. */
export function deploymentCreate(cluster = "") {
  const resources = amounts("resources", "Needs", [["cpu", "1"], ["ram", "512Mi"]]);
  const places = clusters.all.sort((a, b) => a.name.localeCompare(b.name)).map((one) => [one.id, placeName(one)]);
  const create = creator("/deployments");
  dialog("New deployment", (close) => form({
    fields: [
      field({ name: "name", label: "Name", autocomplete: "off", spellcheck: "false", placeholder: "web" }),
      field({ name: "image", label: "Image", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "registry.example/team/web:3", hint: "Without an image the deployment only holds its capacity." }),
      field({ name: "cluster_id", label: "Cluster", as: "select", value: cluster, options: [["", "Any cluster with room"], ...places] }),
      resources.node,
      h("div", { class: "pair" },
        field({ name: "priority", label: "Priority", type: "number", step: 1, placeholder: "0", hint: "Higher goes first and may displace lower." }),
        field({ name: "replicas", label: "Replicas", type: "number", min: 1, step: 1, placeholder: "1" })),
      h("details", {}, h("summary", {}, "Command, ports, environment, labels"),
        field({ name: "command", label: "Command", spellcheck: "false", autocomplete: "off", placeholder: "serve --port 8080" }),
        field({ name: "ports", label: "Ports", inputmode: "numeric", autocomplete: "off", placeholder: "8080, 9090" }),
        field({ name: "env", label: "Environment", as: "textarea", rows: 3, spellcheck: "false", placeholder: "LOG_LEVEL=info", hint: "One NAME=value per line." }),
        field({ name: "labels", label: "Labels", as: "textarea", rows: 2, spellcheck: "false", placeholder: "team=web", hint: "One key=value per line." })),
    ],
    action: "Deploy", cancel: close,
    async send(values) {
      const made = await create({ ...request(values), resources: resources.values() });
      deployments.put(made);
      close();
      toast(`${made.name || "The deployment"} is accepted`);
      location.hash = `#/deployments/${made.id}`;
    },
  }));
}

function placeName(one) {
  const whose = one.shared ? "shared" : owner(one);
  return whose ? `${one.name} (${whose})` : one.name;
}

/** Only what was filled in is sent: the server knows the defaults. */
function request({ name, image, cluster_id, priority, replicas, command, ports, env, labels }) {
  const asked = {
    name: name.trim(), image: image.trim(), cluster_id,
    priority: priority.trim() && Number(priority),
    replicas: replicas.trim() && Number(replicas),
    command: command.trim() && words(command),
    ports: ports.trim() && ports.split(/[\s,]+/).filter(Boolean).map((port) => Number(port) || port),
    env: env.trim() && pairs(env),
    labels: labels.trim() && pairs(labels),
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== ""));
}
