import { basename } from "node:path";
import type { Plugin } from "vite";

const SECTIONS: [address: string, name: string, others: string[]][] = [
  ["./app", '<span class="opens">Open the </span><span>workbench</span>', []],
  ["./agents.html", "Agents", []],
  ["./jobHistory.html", "Jobs", ["jobs.html", "jobTracking.html"]],
  ["./terminal.html", "Terminals", []],
];
/** Pages of the portal have no keys of their own. */
const WITHOUT_KEYS = ["index.html", "jobs.html", "jobTracking.html"];

function barOf(page: string): string {
  const links = SECTIONS.map(([address, name, others]) => {
    const current = address === `./${page}` ? ' aria-current="page"' : others.includes(page) ? ' aria-current="true"' : "";
    return `<a href="${address}"${current}>${name}</a>`;
  });
  const keys = WITHOUT_KEYS.includes(page) ? "" : '<button class="quiet" type="button" data-help aria-label="Keys">?</button>';
  return `<header class="bar"><a class="home" href="./">Portico</a><nav aria-label="Pages">${links.join("")}</nav>${keys}</header>`;
}

/** The bar on top of every page, written once: pages say where with `<!-- bar -->`. */
export function bar(): Plugin {
  return { name: "bar", transformIndexHtml: (html, { filename }) => html.replace("<!-- bar -->", barOf(basename(filename))) };
}
