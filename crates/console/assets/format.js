// Formats values as text. Must not depend on the DOM.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const BYTES = /^(ram|memory|disk|storage)/;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Formats `4294967296` of ram as `4 GiB` and `1.5` of cpu as `1.5`. Amounts below 1 MiB get no unit. */
export function quantity(kind, amount) {
  if (!BYTES.test(kind) || amount < 1024 * 1024) return number.format(amount);
  const power = Math.min(Math.floor(Math.log2(amount) / 10), UNITS.length - 1);
  return `${number.format(Math.round((amount / 1024 ** power) * 100) / 100)} ${UNITS[power]}`;
}

/** Formats an amount as form input, without loss: `64Gi`, `1.5`. */
export function exact(kind, amount) {
  const power = BYTES.test(kind) ? [4, 3, 2, 1].find((power) => amount >= 1024 ** power && amount % 1024 ** power === 0) : 0;
  return power ? `${amount / 1024 ** power}${UNITS[power].slice(0, 2)}` : String(amount);
}

/** Formats `{cpu: 1, ram: 2}` as `1 cpu · 2 ram`; lines break only between the amounts. */
export function quantities(amounts) {
  return Object.entries(amounts ?? {}).sort(byKind).map(([kind, amount]) => `${quantity(kind, amount)} ${kind}`.replaceAll(" ", "\u00a0")).join(" · ");
}

const ORDER = ["cpu", "gpu", "ram"];

/** Sorts `[kind, …]` pairs: the well-known kinds first. */
export function byKind([a], [b]) {
  const rank = (kind) => (ORDER.indexOf(kind) + ORDER.length + 1) % (ORDER.length + 1);
  return rank(a) - rank(b) || a.localeCompare(b);
}

/** Formats a time relative to now: `5 min ago`, `in 7 days`. */
export function ago(time, now = Date.now()) {
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  if (Math.abs(seconds) < 5) return "just now";
  const [amount, unit] = span(Math.abs(seconds), seconds > 0 ? Math.floor : Math.round);
  return seconds > 0 ? `${amount} ${unit} ago` : `in ${amount} ${unit}`;
}

/** Remaining time is rounded, so that 7 days do not become 6 a second later. */
function span(seconds, round) {
  if (seconds < 60) return [seconds, "s"];
  if (seconds < 3600) return [round(seconds / 60), "min"];
  if (seconds < 2 * 86_400) return [round(seconds / 3600), "h"];
  return [round(seconds / 86_400), "days"];
}

/** The full local date and time. */
export function fullTime(time) {
  return moment.format(new Date(time));
}

/** Formats `waiting_for_agent` as `Waiting for agent`. */
export function humanize(word) {
  const text = String(word).replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Formats a count with its noun: `1 cluster`, `2 clusters`. */
export function count(amount, noun) {
  return `${number.format(amount)} ${noun}${amount === 1 ? "" : "s"}`;
}

/** Splits a command line like a shell: at whitespace, with quotes and `\` escapes. */
export function splitCommand(line) {
  const found = [];
  for (const match of line.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/g)) {
    found.push(match[0].replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g, (_, raw, quoted, escaped) => raw ?? quoted?.replace(/\\(.)/g, "$1") ?? escaped));
  }
  return found;
}

/** Parses `KEY=value` lines into an object; a line without `=` is a key with an empty value. */
export function pairs(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}
