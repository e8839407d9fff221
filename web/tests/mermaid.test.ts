/** Flow charts of answers: what is drawn, and what stays text. */

import { expect, test, vi } from "vitest";
import { drawMermaid, layersOf, parseMermaid } from "../src/chart/mermaid";
import { decorateCode } from "../src/conversation/code";
import { toHtml } from "../src/markdown";

const edges = (text: string) => parseMermaid(text)?.edges.map(({ from, to, label }) => [from, to, label].filter(Boolean).join(" "));

test.each<[text: string, edges: string[]]>([
  ["graph TD\nA-->B", ["A B"]],
  ["flowchart LR\n  A[Start] --> B{Is it ok?}\n  B -->|yes| C(Done)\n  B -- no --> A", ["A B", "B C yes", "B A no"]],
  ["graph TB; A-->B; B-->C", ["A B", "B C"]],
  ["graph TD\nA --> B --> C", ["A B", "B C"]],
  ["graph TD\nA & B --> C", ["A C", "B C"]],
  ["graph TD\nA -.-> B\nB ==> C\nC --- D", ["A B", "B C", "C D"]],
  ["graph\nA -. maybe .-> B", ["A B maybe"]],
  ['graph TD\nA["a (b) --> c"] --> B', ["A B"]],
  ["graph TD\n%% a comment\nsubgraph one\nA-->B\nend\nclassDef x fill:#f00\nclass A x\nstyle B fill:#0f0", ["A B"]],
  ["graph TD\nA", []],
])("%j has the arrows %j", (text, found) => expect(edges(text)).toEqual(found));

test.each(["", "sequenceDiagram\nA->>B: hi", "graph TD\nthis is not an arrow", "pie\n\"a\": 1", `graph TD\n${Array.from({ length: 200 }, (_, index) => `n${index}`).join("\n")}`, "graph TD\nA --> "])("%j stays text", (text) => expect(parseMermaid(text)).toBeUndefined());

test("texts, shapes and directions", () => {
  const graph = parseMermaid('flowchart LR\nA["Read<br/>the file"] --> B{"ok?"}\nB --> C((end))')!;
  expect([graph.sideways, graph.nodes.map(({ text, shape }) => [text, shape])]).toEqual([true, [["Read\nthe file", "box"], ["ok?", "choice"], ["end", "round"]]]);
});

test("layers follow the arrows, and a cycle ends", () => {
  const layers = layersOf(parseMermaid("graph TD\nA-->B\nB-->C\nA-->C\nC-->A\nD-->D")!);
  expect(Object.fromEntries(layers)).toEqual({ A: 0, B: 1, C: 2, D: 0 });
});

test("the arrow that was written last closes the circle", () => {
  const layers = layersOf(parseMermaid("graph TD\nA-->B\nB-->|yes| C\nB-->|no| D\nD-->C\nC-->E\nE-->F\nE-.->D")!);
  expect(Object.fromEntries(layers)).toEqual({ A: 0, B: 1, D: 2, C: 3, E: 4, F: 5 });
});

test("the drawing has every text as text, and none as markup", () => {
  const svg = drawMermaid(parseMermaid('graph TD\nA["<img src=x onerror=alert(1)>"] -->|<b>| B')!);
  expect([svg.querySelector("img, b, script"), svg.querySelectorAll(".diagram-node").length, svg.querySelectorAll(".diagram-line").length]).toEqual([null, 2, 1]);
  expect(svg.textContent).toContain("onerror=alert(1)>");
  expect(svg.getAttribute("aria-label")).toMatch(/^Flow chart\. /);
  for (const each of svg.querySelectorAll("rect")) expect([each.getAttribute("x"), each.getAttribute("width")].some((value) => value?.includes("NaN"))).toBe(false);
});

test("a finished answer shows the chart above its text; another diagram stays text; every block names its language", async () => {
  const body = document.createElement("div");
  document.body.replaceChildren(body);
  body.innerHTML = toHtml("```mermaid\ngraph TD\nA-->B\n```\n\n```mermaid\nsequenceDiagram\nA->>B: hi\n```\n\n```diff\n-a\n+b\n```\n\n```nosuch\nx\n```");
  decorateCode(body, true);
  await vi.waitFor(() => expect(body.querySelectorAll("figure.diagram svg").length).toBe(1), 5000);
  await vi.waitFor(() => expect(body.querySelectorAll(".hljs-addition, .hljs-deletion").length).toBe(2), 5000);
  expect([...body.querySelectorAll("pre")].map((each) => each.dataset["language"])).toEqual(["mermaid", "mermaid", "diff", "nosuch"]);
  expect(body.querySelector(".diagram-source code")!.textContent).toBe("graph TD\nA-->B\n");
});

test("a picture of another site is a link that says why there is no picture", () => {
  const body = document.createElement("div");
  body.innerHTML = toHtml("![the chart](https://example.org/a.png)");
  expect([body.textContent?.trim(), body.querySelector("a")?.getAttribute("href"), body.querySelector("img")]).toEqual(["the chart (picture not loaded)", "https://example.org/a.png", null]);
});
