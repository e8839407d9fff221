/** The box to write in, of a session and of one that is still to begin: text that grows, files and pictures, model and mode. */

import { attachmentView } from "../conversation/rows";
import { base64 } from "../conversation/pieces";
import { price } from "../conversation/words";
import { hasKeys, make, makeButton } from "../page";
import type { Suggestion } from "../rest";
import { type Agent, ask } from "../v1";
import { icon } from "../icons";
import { prefer } from "./preferences";
import type { Suggestions } from "./suggestions";
import { wordAt } from "./word";
import { MESSAGE_BOX } from "../texts/composer";

/** A file, or another session: its transcript is fetched when the message is sent. */
export type Attachment = { type: "resource"; label: string; contentType: string; data: string } | { type: "chat"; label: string; resource: string };

/** One message holds 8 MiB; base64 takes a third more. */
const ATTACHED_MAX = 4 * 1024 * 1024;

export const MODES: [value: string, name: string][] = [
  ["ask", MESSAGE_BOX.askBeforeChanges],
  ["allow", MESSAGE_BOX.allowEverything],
  ["deny", MESSAGE_BOX.readOnly],
];

export abstract class MessageBox {
  readonly element = make("form");
  readonly area = make("textarea");
  protected readonly box = make("div", "composer-box");
  protected readonly tools = make("div", "tools");
  protected readonly button = make("button", "send primary");
  protected readonly model = make("select", "pick");
  protected readonly mode = make("select", "pick");
  protected attached: Attachment[] = [];
  /** Loaded with the first sign. */
  protected suggestions: Suggestions | undefined;
  private readonly files = make("div", "attached");

  constructor(protected readonly report: (text: string) => void) {
    this.area.rows = 1;
    this.area.dir = "auto";
    this.button.append(icon("send"));
    this.files.hidden = true;
    this.fillTools();
    this.box.append(this.files, this.area, this.tools);
    this.element.append(this.box);
    this.listen();
  }

  /** `steer`: with Ctrl+Enter, sent to the running agent now. */
  protected abstract submit(busy: "queue" | "steer"): void;
  /** The text or what is attached is not what it was. */
  protected abstract changed(): void;
  /** The session whose files, sessions and commands are offered for this sign; undefined: none. */
  protected abstract suggestedBy(sign: string): string;

  private fillTools(): void {
    const input = make("input");
    input.type = "file";
    input.multiple = true;
    input.hidden = true;
    input.addEventListener("change", () => {
      void this.attach([...(input.files ?? [])]);
      input.value = "";
    });
    const add = makeButton("icon", "", () => input.click());
    add.append(icon("plus"));
    add.setAttribute("aria-label", MESSAGE_BOX.addFilesOrPictures);
    this.model.setAttribute("aria-label", MESSAGE_BOX.model);
    this.mode.setAttribute("aria-label", MESSAGE_BOX.whatTheAgentMayDo);
    this.mode.append(...MODES.map(([value, name]) => new Option(name, value)));
    this.tools.append(add, input, this.model, this.mode);
  }

  private listen(): void {
    const { area, box } = this;
    area.addEventListener("input", () => {
      const sign = wordAt(area.value, area.selectionStart)?.sign;
      if (!this.suggestions && sign && this.suggestedBy(sign)) void this.openSuggestions();
      this.grow();
    });
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      void this.attach(files);
    });
    box.addEventListener("dragover", (event) => {
      event.preventDefault();
      box.classList.add("dropping");
    });
    box.addEventListener("dragleave", () => box.classList.remove("dropping"));
    box.addEventListener("drop", (event) => {
      event.preventDefault();
      box.classList.remove("dropping");
      void this.attach([...(event.dataTransfer?.files ?? [])]);
    });
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit("queue");
    });
  }

  private async openSuggestions(): Promise<void> {
    const { Suggestions: View } = await import("./suggestions");
    if (this.suggestions) return;
    this.suggestions = new View(this.area, (sign) => this.suggestedBy(sign), (item) => this.refer(item), () => this.changed());
    this.box.prepend(this.suggestions.element);
    this.suggestions.update();
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || this.suggestions?.key(event)) return;
    if (event.key !== "Enter") return;
    const command = event.ctrlKey || event.metaKey;
    // On a phone there is a button; Enter is a line there.
    const sends = command || (hasKeys() && !event.shiftKey && prefer("enterSends"));
    if (!sends) return;
    event.preventDefault();
    this.submit(command ? "steer" : "queue");
  }

  protected fillModels(agent: Agent | undefined, model: string): void {
    const models = agent?.models ?? [];
    const all = models.some(({ id }) => id === model) || !model ? models : [{ id: model, name: model }, ...models];
    this.model.replaceChildren(...all.map((each) => new Option([agent?.name, each.name].filter(Boolean).join(" · ") + (price(each.multiplier) ? ` (${price(each.multiplier)})` : ""), each.id)));
    this.model.value = model;
    this.model.disabled = all.length < 2;
    this.model.hidden = all.length === 0;
  }

  private async attach(files: File[]): Promise<void> {
    for (const file of files) {
      if (file.size > ATTACHED_MAX) {
        this.report(MESSAGE_BOX.hasMbAMessageTakes(file.name, Math.round(file.size / 1024 / 1024)));
        continue;
      }
      const data = await base64(file);
      this.attached.push({ type: "resource", label: file.name || "picture", contentType: file.type || "application/octet-stream", data });
    }
    this.showAttached();
  }

  private refer({ session = "", text }: Suggestion): void {
    if (!this.attached.some((each) => each.type === "chat" && each.resource === session)) this.attached.push({ type: "chat", resource: session, label: MESSAGE_BOX.session(text.slice(1)) });
    this.showAttached();
  }

  protected showAttached(): void {
    this.changed();
    this.files.hidden = this.attached.length === 0;
    this.files.replaceChildren(
      ...this.attached.map((each, index) => {
        const item = make("span", "attached-item");
        const remove = makeButton("icon", "", () => {
          this.attached.splice(index, 1);
          this.showAttached();
        });
        remove.append(icon("close"));
        remove.setAttribute("aria-label", MESSAGE_BOX.remove(each.label));
        item.append(attachmentView(each), remove);
        return item;
      }),
    );
  }

  protected put(text: string): void {
    this.area.value = text;
    this.changed();
    this.grow();
  }

  private grow(): void {
    this.area.style.height = "auto";
    this.area.style.height = `${this.area.scrollHeight + 2}px`;
  }
}

/** Named sessions are attached with their transcript so far. */
export async function post(id: string, text: string, busy: "queue" | "steer", attached: Attachment[]): Promise<void> {
  const attachments = await Promise.all(attached.map((each) => (each.type === "chat" ? ask("GET /sessions/{id}/reference", { id: each.resource }) : each)));
  await ask("POST /sessions/{id}/messages", { id }, { body: { text, busy, ...(attachments.length ? { attachments: attachments as unknown as Record<string, unknown>[] } : {}) } });
}
