/** Turns a session's live elements into blocks. Public module: other pages import it by this name. */

import type { LiveElement } from "./api";
import { type BlockType, getMessageBlock, MessageBlock } from "./messageBlock";
import { make, makeButton } from "./page";

const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined ? "" : String(value));

/** Keys that scroll back; they stop the automatic scroll to the end. */
const BACKWARDS = new Set(["ArrowUp", "PageUp", "Home"]);
/** So many blocks at the end stay as they are; older ones go into pages of so many, laid out when they come near the view. */
const NEAR = 50;
const PAGE = 50;
const NEARBY = "1500px 0px";
/** How close to the end counts as being there, in pixels: less than a line. */
const AT_END = 16;

export class SessionResponseRenderer {
  private readonly blocks = new Map<string, MessageBlock>();
  private readonly awaiting = make("div", "session-response-awaiting", "Awaits responses ...");
  private readonly latest: HTMLButtonElement;
  private near: MessageBlock[] = [];
  /** Places in the host's log, where they are known: the events of two streams are shown in one order. */
  private readonly places = new WeakMap<MessageBlock, number>();
  private place: number | undefined;
  private readonly pages: IntersectionObserver | undefined;
  private deferring = false;
  private reading = false;
  private scheduled = false;

  constructor(private readonly container: HTMLDivElement) {
    container.classList.add("session-response-container");
    this.awaiting.style.display = "none";
    this.latest = makeButton("session-response-latest", "Latest ↓", () => this.scrollToBottom());
    this.latest.hidden = true;
    container.append(this.latest, this.awaiting);
    if ("IntersectionObserver" in window) {
      this.pages = new IntersectionObserver((entries) => this.showPages(entries), { root: container, rootMargin: NEARBY });
    }
    // What is at the end stays in sight when a card or a keyboard takes room.
    if ("ResizeObserver" in window) new ResizeObserver(() => this.followEnd()).observe(container);
    this.watchReader();
  }

  /** Shows one element and returns its callback. */
  processCallback(data: LiveElement): string | undefined {
    this.place = typeof data.seq === "number" ? data.seq : undefined;
    this.showElement(data);
    this.place = undefined;
    this.followEnd();
    return data.callback;
  }

  private showElement(data: LiveElement): void {
    switch (data.callback) {
      case "onStartReasoning":
        this.begin("Reasoning", text(data.reasoningId));
        break;
      case "onReasoning":
        this.block("Reasoning", text(data.reasoningId)).appendData(text(data.delta));
        break;
      case "onEndReasoning":
        this.end("Reasoning", text(data.reasoningId), text(data.completeContent));
        break;
      case "onStartMessage":
        this.begin("Message", text(data.messageId));
        break;
      case "onMessage":
        this.block("Message", text(data.messageId)).appendData(text(data.delta));
        break;
      case "onEndMessage":
        this.end("Message", text(data.messageId), text(data.completeContent));
        break;
      case "onStartToolExecution":
        this.beginTool(data);
        break;
      case "onToolExecution":
        this.block("Tool", text(data.toolCallId)).appendData(text(data.delta));
        break;
      case "onEndToolExecution":
        this.endTool(data);
        break;
      case "onGeneratedUserPrompt":
        this.addUserMessage(text(data.prompt), "Task");
        break;
      default:
        if (data.sessionError !== undefined) this.addNotice(text(data.sessionError));
    }
  }

  /** `place`: its position in the host's log; without it, at the end. */
  addUserMessage(message: string, title = "", place = this.place): void {
    const block = this.add("User", place);
    block.title = title;
    block.replaceData(message);
    block.complete();
    this.followEnd();
  }

  /** Shows an error in the conversation, not in the console. */
  addNotice(message: string): void {
    const notice = make("div", "session-response-notice", message);
    notice.setAttribute("role", "alert");
    this.latest.before(notice);
    this.followEnd();
  }

  setAwaiting(awaiting: boolean): void {
    this.awaiting.style.display = awaiting ? "block" : "none";
    this.followEnd();
  }

  scrollToBottom(): void {
    this.follow(true);
    this.container.scrollTop = this.container.scrollHeight;
  }

  /** What arrives in one answer: of a long history only the end is rendered now, the rest when the user scrolls there. */
  together(work: () => void): void {
    this.deferring = this.pages !== undefined;
    try {
      work();
    } finally {
      this.deferring = false;
      for (const block of this.near) block.show();
    }
  }

  /** Another session continues here: its ids may repeat, the blocks shown stay. */
  forgetIds(): void {
    this.blocks.clear();
  }

  /** Clears everything, for a history that is replayed from its beginning. */
  clear(): void {
    this.blocks.clear();
    this.near = [];
    this.pages?.disconnect();
    this.container.replaceChildren(this.latest, this.awaiting);
  }

  private add(type: BlockType, place = this.place): MessageBlock {
    const block = new MessageBlock(type, this.deferring);
    if (place !== undefined) this.places.set(block, place);
    const behind = this.near.findLastIndex((each) => (this.places.get(each) ?? 0) <= (place ?? Infinity));
    const next = this.near[behind + 1];
    (next?.divElement ?? this.latest).before(block.divElement);
    this.near.splice(behind + 1, 0, block);
    // Not while text is selected: moving an element removes the selection in it.
    if (this.near.length >= NEAR + PAGE && !this.reading) this.turnPage();
    return block;
  }

  private turnPage(): void {
    const blocks = this.near.splice(0, PAGE);
    const page = make("div", "message-page");
    const [first, after] = [blocks[0]?.divElement, this.near[0]?.divElement];
    if (!first || !after) return;
    first.before(page);
    // Texts between blocks move with them.
    for (let next: ChildNode | null = first; next && next !== after; next = page.nextSibling) page.append(next);
    this.pages?.observe(page);
  }

  private showPages(entries: IntersectionObserverEntry[]): void {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      this.pages?.unobserve(target);
      for (const div of target.querySelectorAll<HTMLDivElement>(".message-block")) getMessageBlock(div)?.show();
    }
  }

  private begin(type: BlockType, id: string): MessageBlock {
    const known = this.blocks.get(`${type}-${id}`);
    if (known && !known.isCompleted) return known;
    const block = this.add(type);
    this.blocks.set(`${type}-${id}`, block);
    return block;
  }

  private block(type: BlockType, id: string): MessageBlock {
    return this.blocks.get(`${type}-${id}`) ?? this.begin(type, id);
  }

  private end(type: BlockType, id: string, content: string): void {
    // Messages that only carry tool calls have no text; an empty block would be useless.
    if (!content && !this.blocks.get(`${type}-${id}`)?.data) {
      this.remove(`${type}-${id}`);
      return;
    }
    const block = this.block(type, id);
    if (content) block.replaceData(content);
    block.complete();
  }

  private remove(key: string): void {
    const block = this.blocks.get(key);
    block?.divElement.remove();
    this.blocks.delete(key);
    this.near = this.near.filter((each) => each !== block);
  }

  private beginTool(data: LiveElement): void {
    const block = this.begin("Tool", text(data.toolCallId));
    block.title = text(data.toolName);
    block.appendData(`${text(data.toolArguments)}\n`);
  }

  private endTool(data: LiveElement): void {
    const block = this.block("Tool", text(data.toolCallId));
    const result = data.result as { content?: string; detailedContent?: string } | undefined;
    const error = data.error as { message?: string } | undefined;
    const lines = [];
    if (result?.content !== undefined) lines.push(`Result: ${result.content}`);
    if (result?.detailedContent !== undefined) lines.push(`Details: ${result.detailedContent}`);
    if (error) lines.push(`Error: ${text(error.message)}`);
    const gap = block.data && !block.data.endsWith("\n") ? "\n" : "";
    if (lines.length) block.appendData(`${gap}${lines.join("\n")}\n`);
    if (error) block.divElement.classList.add("failed");
    block.complete();
  }

  /** The view follows what arrives until its reader goes back by hand, and again once the end is reached. */
  private watchReader(): void {
    const leave = () => this.follow(false);
    this.container.addEventListener("wheel", (event) => event.deltaY < 0 && leave(), { passive: true });
    this.container.addEventListener("touchmove", leave, { passive: true });
    this.container.addEventListener("keydown", (event) => BACKWARDS.has(event.key) && leave());
    // A press on the container itself is its scroll bar.
    this.container.addEventListener("pointerdown", (event) => event.target === this.container && leave());
    this.container.addEventListener("scroll", () => this.atEnd() && this.follow(true), { passive: true });
  }

  private atEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.container;
    return scrollHeight - scrollTop - clientHeight < AT_END;
  }

  private follow(following: boolean): void {
    this.reading = !following && this.container.scrollHeight > this.container.clientHeight;
    this.latest.hidden = !this.reading;
  }

  private followEnd(): void {
    if (this.scheduled || this.reading) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (!this.reading) this.container.scrollTop = this.container.scrollHeight;
    });
  }
}
