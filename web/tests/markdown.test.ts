import { describe, expect, it, test } from "vitest";
import { looksLikeMarkdown, outsideAddress, toHtml } from "../src/markdown";

function render(text: string): HTMLElement {
  const element = document.createElement("div");
  element.innerHTML = toHtml(text);
  return element;
}

describe("text looks like markdown with two signs of it", () => {
  const signs: Record<string, string> = {
    heading: "# Heading",
    bold: "some **bold** text",
    italic: "some *italic* text",
    link: "a [link](https://example.org)",
    bullets: "- item",
    numbers: "1. item",
    quote: "> quote",
    fence: "```\nx\n```",
    "inline code": "some `code` here",
    table: "| a | b |\n|---|---|\n| 1 | 2 |",
    rule: "above\n\n---\n\nbelow",
    image: "![alt](https://example.org/x.png)",
  };
  const names = Object.keys(signs);
  it.each(names)("%s alone is not enough", (name) => expect(looksLikeMarkdown(signs[name]!)).toBe(false));
  it.each(names)("%s and another one are", (name) => {
    const other = name === "heading" ? signs["bold"]! : signs["heading"]!;
    expect(looksLikeMarkdown(`${other}\n\n${signs[name]}`)).toBe(true);
  });
  it("plain text is not", () => {
    expect(looksLikeMarkdown("")).toBe(false);
    expect(looksLikeMarkdown("Just a sentence, with 2 * 3 * 4 and snake_case_names.")).toBe(false);
  });
});

test("ordinary markdown becomes what it says", () => {
  const html = render("# T\n\n- [x] done\n- [ ] open\n\n| a | b |\n|:-:|---|\n| 1 | 2 |\n\n```ts\nlet a = 1 < 2;\n```\n\nline<br>break, H<sub>2</sub>O");
  expect(html.querySelector("h1")!.textContent).toBe("T");
  expect([...html.querySelectorAll("li")].map((li) => li.textContent!.trim())).toEqual(["☑ done", "☐ open"]);
  expect(html.querySelector("td")!.getAttribute("align")).toBe("center");
  expect(html.querySelector("pre code.language-ts")!.textContent).toBe("let a = 1 < 2;\n");
  expect(html.querySelector("br")).not.toBeNull();
  expect(html.querySelector("sub")!.textContent).toBe("2");
});

describe("hostile markdown", () => {
  const attacks = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<details open ontoggle=alert(1)>",
    "<br onclick=alert(1)>",
    "<p style='position:fixed;inset:0'>cover</p>",
    "<form action=/api/stop><button>x</button></form>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<object data=//evil.example></object>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png?secret)",
    "[x](https://e.example/\"onmouseover=\"alert(1))",
    "![\"onload=\"alert(1)](https://e.example/x)",
    "```\"><script>alert(1)</script>\nx\n```",
    "`<script>alert(1)</script>`",
    "<div id=send-button name=body>clobber</div>",
    "<https://e.example/<script>alert(1)</script>>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
  ];
  it.each(attacks)("%s", (attack) => {
    const html = render(`# heading\n\n${attack}\n\n**bold** ${attack}`);
    const forbidden = "script,img,svg,math,iframe,object,embed,style,link,meta,base,form,input,button,video,audio,[style],[id],[name],[src],[srcset]";
    expect(html.querySelectorAll(forbidden)).toHaveLength(0);
    for (const element of html.querySelectorAll("*")) {
      for (const { name } of element.attributes) expect(["href", "target", "rel", "class", "align", "start", "tabindex"]).toContain(name);
    }
    for (const link of html.querySelectorAll("a")) {
      expect(link.href).toMatch(/^(https?|mailto):/);
      expect(link.rel).toBe("noopener noreferrer");
      expect(link.target).toBe("_blank");
    }
  });
});

describe("links lead to other sites only", () => {
  it.each(["/api/stop", "api/stop", "//127.0.0.1:8888/api/stop", "http://127.0.0.1:8888/api/stop", "?x", "#x", "file:///etc/passwd", "C:\\x", ""])(
    "%j is not a link, because a click would act on this host or this machine",
    (href) => expect(outsideAddress(href)).toBeUndefined(),
  );
  it.each(["https://example.org/a?b#c", "http://example.org/", "mailto:a@example.org"])("%j is", (href) => expect(outsideAddress(href)).toBe(href));
  it("keeps the words of a link it drops", () => {
    const html = render("[stop](/api/stop)");
    expect(html.querySelector("a")).toBeNull();
    expect(html.textContent!.trim()).toBe("stop");
  });
  it("turns an image into a link, so nothing is loaded unasked", () => {
    const link = render("![a picture](https://example.org/x.png)").querySelector("a")!;
    expect(link.textContent).toBe("a picture");
    expect(link.href).toBe("https://example.org/x.png");
  });
});
