/** One block of a conversation. Public module: other pages import it by this name. */

import { EscapeFilter } from "./escapes";
import { looksLikeMarkdown, toHtml } from "./markdown";
import { make, makeButton } from "./page";

export type BlockType = "User" | "Reasoning" | "Tool" | "Message";

/** The block of an element, as long as the element exists. */
const BLOCK = Symbol("MessageBlock");
type Holder = HTMLDivElement & { [BLOCK]?: MessageBlock };

const OPEN_WHEN_COMPLETED: ReadonlySet<BlockType> = new Set<BlockType>(["User", "Message"]);

let scrolling: Set<MessageBlock> | undefined;

export class MessageBlock {
  readonly divElement: HTMLDivElement = make("div");
  private readonly headerText = make("span", "message-block-header-text");
  private readonly header = make("div", "message-block-header");
  private readonly body = make("div", "message-block-body");
  private readonly text = document.createTextNode("");
  private readonly toggle: HTMLButtonElement | undefined;
  private filter = new EscapeFilter();
  private completed = false;
  private collapsed = false;
  private currentTitle = "";
  /** What the body shows: undefined until the text has been looked at. */
  private asMarkdown: boolean | undefined;
  private stale = false;
  private deferred: boolean;

  /** `deferred`: it is not visible yet, so its text stays unformatted until `show`. */
  constructor(
    readonly blockType: BlockType,
    deferred = false,
  ) {
    this.deferred = deferred;
    this.divElement.className = `message-block message-block-${blockType.toLowerCase()} receiving`;
    (this.divElement as Holder)[BLOCK] = this;
    this.header.append(this.headerText);
    if (blockType !== "Tool") {
      this.toggle = makeButton("message-block-toggle", "View Markdown", () => this.switchView());
      this.toggle.hidden = true;
      this.header.append(this.toggle);
    }
    this.header.addEventListener("click", (event) => {
      if (event.target !== this.toggle) this.switchCollapsed();
    });
    this.headerText.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.switchCollapsed();
    });
    this.body.append(this.text);
    this.body.tabIndex = 0;
    this.divElement.append(this.header, this.body);
    this.showHeader();
  }

  get isCompleted(): boolean {
    return this.completed;
  }

  /** The whole text so far. */
  get data(): string {
    return this.text.data;
  }

  get title(): string {
    return this.currentTitle;
  }

  set title(title: string) {
    this.currentTitle = title;
    this.showHeader();
  }

  /** After the end nothing is added: `replaceData` may still correct the whole. */
  appendData(data: string): void {
    if (this.completed) return;
    this.text.appendData(this.filter.push(data));
    this.changed();
  }

  replaceData(data: string): void {
    this.filter = new EscapeFilter();
    this.text.data = this.filter.push(data);
    this.changed();
  }

  complete(): void {
    if (this.completed) return;
    this.completed = true;
    this.divElement.classList.replace("receiving", "completed");
    this.body.removeAttribute("tabindex");
    this.headerText.setAttribute("role", "button");
    this.headerText.tabIndex = 0;
    if (this.toggle) this.toggle.hidden = false;
    this.stale = true;
    this.collapse(!OPEN_WHEN_COMPLETED.has(this.blockType));
    this.showHeader();
  }

  private changed(): void {
    if (this.completed) {
      this.stale = true;
      this.render();
    } else {
      followEnd(this);
    }
  }

  /** It is about to be seen. */
  show(): void {
    this.deferred = false;
    this.render();
  }

  /** While it receives, the body shows its last lines. */
  scrollBody(): void {
    if (!this.completed) this.body.scrollTop = this.body.scrollHeight;
  }

  private showHeader(): void {
    const title = this.currentTitle ? ` (${this.currentTitle})` : "";
    this.headerText.textContent = `${this.blockType}${title}${this.completed ? "" : " [receiving...]"}`;
  }

  private switchCollapsed(): void {
    if (this.completed) this.collapse(!this.collapsed);
  }

  private collapse(collapsed: boolean): void {
    this.collapsed = collapsed;
    this.divElement.classList.toggle("collapsed", collapsed);
    this.headerText.setAttribute("aria-expanded", String(!collapsed));
    this.render();
  }

  private switchView(): void {
    this.asMarkdown = !this.asMarkdown;
    this.stale = true;
    this.render();
  }

  /** A collapsed body is rendered when it is opened. */
  private render(): void {
    if (this.deferred) return;
    if (this.toggle && this.stale) {
      this.asMarkdown ??= looksLikeMarkdown(this.data);
      this.toggle.textContent = this.asMarkdown ? "View Raw Data" : "View Markdown";
    }
    if (!this.stale || this.collapsed) return;
    this.stale = false;
    this.body.classList.toggle("markdown", this.asMarkdown === true);
    if (this.asMarkdown) this.body.innerHTML = toHtml(this.data);
    else this.body.replaceChildren(this.text);
  }
}

/** Reading a height makes the browser lay the page out, so it happens once per frame, however much arrives. */
function followEnd(block: MessageBlock): void {
  if (scrolling) {
    scrolling.add(block);
    return;
  }
  scrolling = new Set([block]);
  requestAnimationFrame(() => {
    const blocks = scrolling;
    scrolling = undefined;
    blocks?.forEach((each) => each.scrollBody());
  });
}

export function getMessageBlock(div: HTMLDivElement): MessageBlock | undefined {
  return (div as Holder)[BLOCK];
}
