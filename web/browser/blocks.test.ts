/** The public modules, imported by name into a page of the host as other people's pages do it. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LiveElement } from "../src/api";
import type { BlockType } from "../src/messageBlock";
import { RealHost } from "./host";
import { Person } from "./person";

type Modules = typeof import("../src/messageBlock") & typeof import("../src/sessionResponse");
declare global {
  interface Window {
    modules: Modules;
    renderer: InstanceType<Modules["SessionResponseRenderer"]>;
  }
}

const host = new RealHost();
let person: Person;
let page: Page;

beforeAll(async () => {
  await host.start();
  person = await Person.arrive();
  page = person.page;
  await person.logIn(host);
  await page.goto(`${host.url}/index.html`);
  await page.waitForSelector("#start-button:enabled");
  // As text, because the tests' own loader would take the import for one of its own.
  await page.evaluate('Promise.all(["/messageBlock.js", "/sessionResponse.js"].map((name) => import(name))).then((all) => { window.modules = Object.assign({}, ...all); })');
});
afterAll(async () => {
  await person.leave();
  await host.close();
});

/** An empty part with the real styles. */
beforeEach(() =>
  page.evaluate(() => {
    const part = document.createElement("div");
    part.id = "stage";
    part.style.height = "500px";
    document.body.replaceChildren(part);
    window.renderer = new window.modules.SessionResponseRenderer(part);
  }),
);

interface Given {
  type: BlockType;
  title?: string;
  data: string[];
  complete?: boolean;
}

/** Makes blocks through `/messageBlock.js`; they are found by their element afterwards. */
const makeBlocks = (...given: Given[]) =>
  page.evaluate((all) => {
    for (const { type, title, data, complete } of all) {
      const block = new window.modules.MessageBlock(type);
      if (title !== undefined) block.title = title;
      document.getElementById("stage")!.append(block.divElement);
      data.forEach((each) => block.appendData(each));
      if (complete) block.complete();
    }
  }, given);

/** Shows elements through `/sessionResponse.js` and says what `processCallback` returned. */
const play = (...elements: LiveElement[]) => page.evaluate((all) => all.map((each) => window.renderer.processCallback(each)), elements);

const classes = () => page.$$eval(".message-block", (all) => all.map((each) => [...each.classList].filter((name) => /^(receiving|completed|collapsed)$/.test(name)).join(" ")));
const LINES = "line\n".repeat(60);
const MARKDOWN = "# Title\n\n**bold** text";

describe("a block", () => {
  test("header: type, title in brackets, what it is doing", async () => {
    await makeBlocks({ type: "Message", data: ["x"] }, { type: "Tool", title: "grep", data: ["x"] }, { type: "User", title: "Task", data: ["x"], complete: true }, { type: "Reasoning", data: [], complete: true });
    expect(await person.headers()).toEqual(["Message [receiving...]", "Tool (grep) [receiving...]", "User (Task)", "Reasoning"]);
  });

  test("receiving: at most 150 px, at its end, and a click on the header does nothing", async () => {
    await makeBlocks({ type: "Message", data: [LINES, "the end"] });
    expect(await classes()).toEqual(["receiving"]);
    await page.waitForFunction(() => document.querySelector(".message-block-body")!.scrollTop > 0);
    const body = await page.$eval(".message-block-body", (each) => [each.clientHeight, each.scrollHeight - each.scrollTop - each.clientHeight]);
    expect(body).toEqual([150, 0]);
    await page.click(".message-block-header");
    expect(await classes()).toEqual(["receiving"]);
    expect(await page.isVisible(".message-block-toggle")).toBe(false);
  });

  test("completed: User and Message open, Reasoning and Tool closed, others untouched, no height limit, the header toggles", async () => {
    const types = ["User", "Message", "Reasoning", "Tool"] as const;
    await makeBlocks({ type: "Message", data: ["still coming"] }, ...types.map((type) => ({ type, data: [LINES], complete: true })));
    expect(await classes()).toEqual(["receiving", "completed", "completed", "completed collapsed", "completed collapsed"]);
    const body = page.locator(".message-block-user .message-block-body");
    expect((await body.boundingBox())!.height).toBeGreaterThan(1000);
    expect(await page.isVisible(".message-block-tool .message-block-body")).toBe(false);
    await page.click(".message-block-tool .message-block-header");
    await page.click(".message-block-user .message-block-header-text");
    expect(await classes()).toEqual(["receiving", "completed collapsed", "completed", "completed collapsed", "completed"]);
    // By keyboard, too.
    await page.focus(".message-block-user .message-block-header-text");
    await page.keyboard.press("Enter");
    expect(await body.isVisible()).toBe(true);
  });

  test("a button of full height at the right switches between text and markdown, for all but Tool", async () => {
    const types = ["User", "Message", "Reasoning", "Tool"] as const;
    await makeBlocks(...types.map((type) => ({ type, data: [MARKDOWN], complete: true })));
    expect(await page.$$eval(".message-block", (all) => all.map((each) => each.querySelectorAll(".message-block-header button").length))).toEqual([1, 1, 1, 0]);
    const message = page.locator(".message-block-message");
    const toggle = message.locator("button");
    const [header, button] = [(await message.locator(".message-block-header").boundingBox())!, (await toggle.boundingBox())!];
    expect([button.height, button.x + button.width]).toEqual([header.height, header.x + header.width]);
    expect([await toggle.textContent(), await message.locator("h1").textContent()]).toEqual(["View Raw Data", "Title"]);
    await toggle.click();
    expect([await toggle.textContent(), await message.locator(".message-block-body").textContent()]).toEqual(["View Markdown", MARKDOWN]);
    expect(await classes()).toEqual(["completed", "completed", "completed collapsed", "completed collapsed"]);
    await toggle.click();
    expect(await message.locator("h1").count()).toBe(1);
  });

  test("one sign of markdown is not enough; the button shows it all the same", async () => {
    await makeBlocks({ type: "Message", data: ["a **bold** word"], complete: true });
    expect(await person.bodies()).toEqual(["a **bold** word"]);
    await page.click("text=View Markdown");
    expect(await page.textContent(".message-block-body strong")).toBe("bold");
  });

  test("is found through its element, and tells about itself", async () => {
    const told = await page.evaluate(() => {
      const { MessageBlock, getMessageBlock } = window.modules;
      const block = new MessageBlock("Message");
      block.appendData("a");
      block.replaceData("b");
      const before = block.isCompleted;
      block.complete();
      return [getMessageBlock(block.divElement) === block, getMessageBlock(document.createElement("div")), block.blockType, block.title, before, block.isCompleted, block.divElement.textContent!.includes("b")];
    });
    expect(told).toEqual([true, undefined, "Message", "", false, true, true]);
  });
});

describe("the renderer", () => {
  test("one turn, told in pieces: every callback is named, the blocks are in order", async () => {
    const names = await play(
      { callback: "onAgentStart", turnId: "0" },
      { callback: "onStartReasoning", reasoningId: "r" },
      { callback: "onReasoning", reasoningId: "r", delta: "hm" },
      { callback: "onEndReasoning", reasoningId: "r", completeContent: "hm, yes" },
      { callback: "onStartToolExecution", toolCallId: "t", toolName: "grep", toolArguments: '{\n  "a": 1\n}' },
      { callback: "onToolExecution", toolCallId: "t", delta: "partial\n" },
      { callback: "onEndToolExecution", toolCallId: "t", result: { content: "found", detailedContent: "in full" } },
      { callback: "onStartToolExecution", toolCallId: "u", toolName: "rm", toolArguments: "" },
      { callback: "onEndToolExecution", toolCallId: "u", error: { message: "no such file" } },
      { callback: "onStartMessage", messageId: "m" },
      { callback: "onMessage", messageId: "m", delta: "Hel" },
      { callback: "onMessage", messageId: "m", delta: "lo" },
      { callback: "onGeneratedUserPrompt", prompt: "go on" },
      { callback: "onAgentEnd", turnId: "0" },
      { callback: "onIdle" },
    );
    expect(names.slice(0, 3)).toEqual(["onAgentStart", "onStartReasoning", "onReasoning"]);
    expect(names.at(-1)).toBe("onIdle");
    expect(await page.getAttribute("#stage", "class")).toBe("session-response-container");
    expect(await person.headers()).toEqual(["Reasoning", "Tool (grep)", "Tool (rm)", "Message [receiving...]", "User (Task)"]);
    // What is closed is put on the page when it is opened.
    for (const header of await page.$$(".collapsed .message-block-header")) await header.click();
    expect(await person.bodies()).toEqual(["hm, yes", '{\n  "a": 1\n}\npartial\nResult: found\nDetails: in full\n', "\nError: no such file\n", "Hello", "go on"]);
    await play({ callback: "onEndMessage", messageId: "m", completeContent: "Hello, whole." });
    expect((await person.bodies())[3]).toBe("Hello, whole.");
  });

  test("unknown ids create their block; the same id of another type is another block", async () => {
    await play({ callback: "onMessage", messageId: "x", delta: "m" }, { callback: "onReasoning", reasoningId: "x", delta: "r" }, { callback: "onEndMessage", messageId: "y", completeContent: "whole" });
    expect(await person.headers()).toEqual(["Message [receiving...]", "Reasoning [receiving...]", "Message"]);
  });

  test("what somebody wrote is a User block, with a title if it has one", async () => {
    await page.evaluate(() => {
      window.renderer.addUserMessage("mine");
      window.renderer.addUserMessage("of a task", "Task");
    });
    expect([await person.headers(), await person.bodies(), await classes()]).toEqual([["User", "User (Task)"], ["mine", "of a task"], ["completed", "completed"]]);
  });

  test("the awaiting line stays last, and the view at the end until its reader goes back", async () => {
    await play({ callback: "onEndMessage", messageId: "0", completeContent: LINES });
    const set = (awaiting: boolean) => page.evaluate((on) => window.renderer.setAwaiting(on), awaiting);
    await set(true);
    await play({ callback: "onEndMessage", messageId: "1", completeContent: LINES });
    expect(await page.$eval("#stage", (stage) => [stage.lastElementChild!.textContent, (stage.lastElementChild as HTMLElement).style.display])).toEqual(["Awaits responses ...", "block"]);
    const atEnd = () => page.waitForFunction(() => { const { scrollTop, scrollHeight, clientHeight } = document.getElementById("stage")!; return scrollHeight - scrollTop - clientHeight < 2; });
    await atEnd();
    await page.hover("#stage");
    await page.mouse.wheel(0, -600);
    await page.waitForSelector(".session-response-latest", { state: "visible" });
    await page.waitForFunction(() => { const { scrollTop, scrollHeight, clientHeight } = document.getElementById("stage")!; return scrollHeight - scrollTop - clientHeight > 400; });
    const before = await page.$eval("#stage", (stage) => stage.scrollTop);
    await play({ callback: "onEndMessage", messageId: "2", completeContent: LINES });
    expect(await page.$eval("#stage", (stage) => stage.scrollTop)).toBe(before);
    await page.click(".session-response-latest");
    await atEnd();
    await set(false);
    expect(await page.isVisible(".session-response-awaiting")).toBe(false);
  });

  test("terminal escapes are taken out, also when they come in pieces", async () => {
    await play({ callback: "onStartToolExecution", toolCallId: "t", toolName: "ls", toolArguments: "" }, { callback: "onToolExecution", toolCallId: "t", delta: "\x1b[3" }, { callback: "onToolExecution", toolCallId: "t", delta: "1mred\x1b]0;title\x07\x1b[0m" });
    expect(await person.bodies()).toEqual(["\nred"]);
  });
});
