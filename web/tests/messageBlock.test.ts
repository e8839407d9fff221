import { beforeEach, describe, expect, it, test } from "vitest";
import { type BlockType, getMessageBlock, MessageBlock } from "../src/messageBlock";

const header = (block: MessageBlock) => block.divElement.querySelector<HTMLElement>(".message-block-header")!;
const headerText = (block: MessageBlock) => header(block).querySelector("span")!;
const body = (block: MessageBlock) => block.divElement.querySelector<HTMLElement>(".message-block-body")!;
const toggle = (block: MessageBlock) => header(block).querySelector("button");
const MARKDOWN = "# Title\n\nSome **bold** words.";

function completed(type: BlockType, text: string): MessageBlock {
  const block = new MessageBlock(type);
  block.appendData(text);
  block.complete();
  document.body.append(block.divElement);
  return block;
}

beforeEach(() => document.body.replaceChildren());

test("a block is found through its element", () => {
  const block = new MessageBlock("Tool");
  expect(getMessageBlock(block.divElement)).toBe(block);
  expect(getMessageBlock(document.createElement("div"))).toBeUndefined();
});

describe("while it receives", () => {
  it("says so in its header, with its title in brackets", () => {
    const block = new MessageBlock("Tool");
    expect(headerText(block).textContent).toBe("Tool [receiving...]");
    block.title = "bash";
    expect(block.title).toBe("bash");
    expect(headerText(block).textContent).toBe("Tool (bash) [receiving...]");
    expect(block.divElement.className).toContain("message-block");
    expect(block.divElement.classList.contains("receiving")).toBe(true);
    expect(block.isCompleted).toBe(false);
  });

  it("shows what it was given as plain text", () => {
    const block = new MessageBlock("Message");
    block.appendData("# a ");
    block.appendData("<b>**b**</b>");
    expect(body(block).textContent).toBe("# a <b>**b**</b>");
    expect(body(block).children).toHaveLength(0);
    block.replaceData("new");
    expect(body(block).textContent).toBe("new");
  });

  it("ignores clicks on its header and offers no other view", () => {
    const block = new MessageBlock("Message");
    header(block).click();
    expect(block.divElement.classList.contains("collapsed")).toBe(false);
    expect(toggle(block)!.hidden).toBe(true);
  });
});

describe("when completed", () => {
  it("takes nothing more in", () => {
    const block = completed("Message", "whole");
    block.appendData(" and more");
    expect([block.data, body(block).textContent]).toEqual(["whole", "whole"]);
  });

  it.each<[BlockType, boolean]>([
    ["User", false],
    ["Message", false],
    ["Reasoning", true],
    ["Tool", true],
  ])("%s: collapsed is %s, and the header loses its suffix", (type, collapsed) => {
    const block = completed(type, "text");
    expect(block.isCompleted).toBe(true);
    expect([...block.divElement.classList]).not.toContain("receiving");
    expect([...block.divElement.classList]).toContain("completed");
    expect(block.divElement.classList.contains("collapsed")).toBe(collapsed);
    expect(headerText(block).textContent).toBe(type);
  });

  it("opens and closes with its header, by mouse and by keyboard", () => {
    const block = completed("Tool", "text");
    header(block).click();
    expect(block.divElement.classList.contains("collapsed")).toBe(false);
    headerText(block).dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    expect(block.divElement.classList.contains("collapsed")).toBe(true);
    expect(headerText(block).getAttribute("aria-expanded")).toBe("false");
  });

  it("leaves other blocks alone", () => {
    const first = completed("Message", "one");
    completed("Message", "two");
    expect(first.divElement.classList.contains("collapsed")).toBe(false);
  });

  it("renders what looks like markdown and switches to the raw text and back", () => {
    const block = completed("Message", MARKDOWN);
    expect(body(block).querySelector("h1")!.textContent).toBe("Title");
    expect(toggle(block)!.textContent).toBe("View Raw Data");
    toggle(block)!.click();
    expect(body(block).textContent).toBe(MARKDOWN);
    expect(toggle(block)!.textContent).toBe("View Markdown");
    toggle(block)!.click();
    expect(body(block).querySelector("strong")!.textContent).toBe("bold");
    expect(block.divElement.classList.contains("collapsed")).toBe(false);
  });

  it("keeps plain text plain until asked", () => {
    const block = completed("User", "a *b* c");
    expect(body(block).textContent).toBe("a *b* c");
    toggle(block)!.click();
    expect(body(block).querySelector("em")!.textContent).toBe("b");
  });

  it("has no other view of a tool", () => {
    const block = completed("Tool", MARKDOWN);
    header(block).click();
    expect(toggle(block)).toBeNull();
    expect(body(block).textContent).toBe(MARKDOWN);
  });

  it("shows reasoning as markdown when it is opened", () => {
    const block = completed("Reasoning", MARKDOWN);
    header(block).click();
    expect(body(block).querySelector("h1")).not.toBeNull();
  });
});

test("terminal escapes are taken out, also when they arrive in pieces", () => {
  const block = new MessageBlock("Tool");
  block.appendData("a\x1b[3");
  block.appendData("1mred\x1b[0m\x1b]0;title\x07 b\r\n");
  block.appendData("c\x08\x9b2J");
  expect(block.data).toBe("ared b\nc2J");
});
