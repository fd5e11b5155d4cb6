// Renders the Markdown subset of descriptions as elements: paragraphs, lists, code, bold, links.

import { h } from "../dom.js";

/** Renders a description as elements. */
export function prose(text) {
  const blocks = String(text ?? "").trim().split(/\n\s*\n/).filter(Boolean);
  return blocks.map((block) => {
    if (block.startsWith("```")) return h("pre", {}, block.replace(/^```.*\n|\n?```$/g, ""));
    const heading = /^#+\s+(.*)/.exec(block);
    if (heading) return h("p", {}, h("b", {}, heading[1]));
    const lines = block.split("\n");
    if (lines.every((line) => /^\s*([-*]|\s)\s/.test(line)) && /^\s*[-*]\s/.test(block)) {
      return h("ul", { class: "bullets" }, block.split(/^\s*[-*]\s+/m).filter((item) => item.trim()).map((item) => h("li", {}, spans(item.trim()))));
    }
    return h("p", {}, spans(lines.join(" ")));
  });
}

/** The plain text, for use inside links. */
export function plain(text) {
  return String(text).replace(/`([^`]+)`/g, "$1").replace(/\*\*([^*]+)\*\*/g, "$1").replace(/\[([^\]]+)\]\([^)\s]+\)/g, "$1");
}

/** One line of a description as elements. */
export function spans(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)\s]+\))/).map((part) => {
    if (/^`.+`$/.test(part)) return h("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return h("b", {}, part.slice(2, -2));
    const link = /^\[(.+)\]\((https?:\/\/[^)]+|[/#][^)]*)\)$/.exec(part);
    return link ? h("a", { href: link[2] }, link[1]) : part;
  });
}
