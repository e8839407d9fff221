/** A new session: the agent and its models in its own order with prices, the folder, an own copy or not, and what to do. */

import { root } from "../root";
import { explain } from "../api";
import { commandsOf, commandView } from "../commands";
import { folder, price } from "../conversation/words";
import { hasKeys, make, makeButton } from "../page";
import { type Agent, call, type Start, v1 } from "../v1";
import { MODES } from "./composer";
import { icon } from "../icons";
import { prefer, remember, remembered } from "./preferences";
import type { Shell, View } from "./shell";

/** Folders that were worked in lately. */
const FOLDERS = 8;
/** Of those, so many stand below the field. */
const RECENT = 6;

export class NewSession implements View {
  readonly element = make("section", "place");
  readonly title = "New session";
  private readonly form = make("form", "start wide");
  private readonly agents = make("div", "agents-choice");
  private readonly model = make("select");
  private readonly folder = make("input");
  private readonly copy = make("input");
  private readonly mode = make("select");
  private readonly first = make("textarea");
  private readonly button = make("button", "primary", "Start");
  private readonly trouble = make("p", "trouble");
  private readonly missing = make("div", "missing");
  private known: Agent[] = [];
  private chosen = "";

  constructor(private readonly shell: Shell) {
    const head = make("header", "head");
    const back = makeButton("icon back", "", () => shell.go({ at: "home" }));
    back.append(icon("back"));
    back.setAttribute("aria-label", "Back to the list");
    const text = make("div", "head-text");
    text.append(make("h1", "", "New session"), make("p", "", "One conversation with one agent in one folder. It goes on when you close the page."));
    const job = make("a", "button", "Start a job");
    job.href = `${root}/app/new/job`;
    head.append(back, text, job);
    const scroll = make("div", "scroll");
    scroll.append(this.form);
    this.element.append(head, scroll);
    this.build();
    void this.load();
  }

  private build(): void {
    this.agents.id = "agents";
    this.agents.setAttribute("role", "radiogroup");
    this.agents.setAttribute("aria-label", "Agent");
    this.model.id = "model";
    this.folder.id = "folder";
    this.folder.setAttribute("list", "folders");
    this.folder.spellcheck = false;
    this.folder.autocomplete = "off";
    this.folder.placeholder = "An absolute path";
    this.copy.type = "checkbox";
    this.copy.id = "own-copy";
    this.mode.id = "mode";
    this.mode.append(...MODES.map(([value, name]) => new Option(name, value)));
    this.first.id = "first";
    this.first.rows = 4;
    this.first.dir = "auto";
    this.first.placeholder = "Find out why the login test is flaky, and fix it";
    this.button.id = "start";
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    const own = make("label", "check");
    own.append(this.copy, "Work in its own copy (a git worktree beside the folder, on its own branch)");
    this.form.append(labelled("What should be done?", this.first), make("h2", "", "Agent"), this.agents, this.missing, labelled("Model", this.model), labelled("Folder", this.folder), own, labelled("What it may do", this.mode), this.trouble, this.button);
    this.first.addEventListener("keydown", (event) => {
      const sends = event.ctrlKey || event.metaKey || (hasKeys() && !event.shiftKey && prefer("enterSends"));
      if (event.key !== "Enter" || event.isComposing || !sends) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.begin();
    });
  }

  private async load(): Promise<void> {
    try {
      const [agents, about] = await Promise.all([v1.agents(), v1.about()]);
      // Those that work come first; among themselves they stay in the host's order.
      this.known = [...agents].sort((one, other) => Number(Boolean(one.missing)) - Number(Boolean(other.missing)));
      const wanted = new URLSearchParams(window.location.search).get("agent") ?? this.chosen ?? remembered("agent");
      this.chosen = this.known.some(({ id }) => id === wanted) ? (wanted as string) : (this.known.find(({ id, missing }) => id === remembered("agent") && !missing) ?? this.known[0])?.id ?? "";
      this.fillFolders(about.workspaces);
      this.showAgents();
      this.choose(this.chosen);
      if (document.activeElement === document.body) this.first.focus();
    } catch (error) {
      this.say(explain(error));
    }
  }

  private fillFolders(workspaces: string[]): void {
    const recent = [...this.shell.feed.rows.values()].sort((one, other) => other.session.modified - one.session.modified).map(({ session }) => session.cwd);
    const all = [...new Set([...recent, ...workspaces])].filter((path) => !path.includes(".worktrees/")).slice(0, FOLDERS);
    const list = make("datalist");
    list.id = "folders";
    list.append(...all.map((path) => new Option(path, path)));
    this.form.querySelector("datalist")?.remove();
    this.form.append(list);
    if (!this.folder.value) this.folder.value = new URLSearchParams(window.location.search).get("folder") ?? all[0] ?? "";
    this.showRecent(all.slice(0, RECENT));
  }

  /** A field that is filled in suggests nothing, so the folders used last stand below it. */
  private showRecent(paths: string[]): void {
    const row = make("div", "chips recent");
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "Folders used last");
    const mark = () => {
      for (const chip of row.querySelectorAll<HTMLElement>("button")) chip.setAttribute("aria-pressed", String(chip.title === this.folder.value.trim()));
    };
    row.append(
      ...paths.map((path) => {
        const chip = makeButton("chip", folder(path), () => {
          this.folder.value = path;
          mark();
        });
        chip.title = path;
        return chip;
      }),
    );
    this.folder.oninput = mark;
    mark();
    this.form.querySelector(".recent")?.remove();
    if (paths.length > 1) this.folder.closest("label")?.after(row);
  }

  private showAgents(): void {
    this.agents.replaceChildren(
      ...this.known.map((agent) => {
        const input = make("input");
        input.type = "radio";
        input.name = "agent";
        input.value = agent.id;
        input.checked = agent.id === this.chosen;
        input.addEventListener("change", () => this.choose(agent.id));
        const label = make("label", `agent-choice ${agent.missing ? "lacking" : ""}`);
        const tag = agent.label && agent.label.toLowerCase() !== agent.name.toLowerCase() ? ` (${agent.label})` : "";
        label.append(input, make("span", "", agent.name + tag), ...(agent.missing ? [make("small", "pill need", "not ready")] : []));
        return label;
      }),
    );
    if (this.known.length === 0) this.agents.append(make("p", "", "This host has no agent. "), commandView("portico doctor"));
  }

  private choose(id: string): void {
    this.chosen = id;
    const agent = this.known.find((each) => each.id === id);
    const models = agent?.models ?? [];
    this.model.replaceChildren(...models.map((model) => new Option(price(model.multiplier) ? `${model.name} (${price(model.multiplier)})` : model.name, model.id)));
    const label = this.model.closest("label");
    if (label) label.hidden = models.length === 0;
    const hint = agent?.missing ?? "";
    this.missing.hidden = !hint;
    this.missing.replaceChildren(...(hint ? [make("p", "", hint), ...commandsOf(hint).map(commandView), this.checkAgain(id)] : []));
    this.button.disabled = Boolean(hint) || !agent;
  }

  /** The host starts it and speaks its first words with it: that says more than a look at the disk. */
  private checkAgain(id: string): HTMLElement {
    const button = makeButton("", "Check again", async () => {
      button.disabled = true;
      button.textContent = "Checking…";
      try {
        const { status, detail } = await call<{ status: string; detail?: string }>("POST", `/agents/${encodeURIComponent(id)}/check`);
        if (status !== "ready" && detail) this.say(detail);
      } catch {
        // A host that cannot check still knows what is missing.
      }
      await this.load();
    });
    return button;
  }

  private say(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = false;
  }

  private async begin(): Promise<void> {
    this.button.disabled = true;
    this.trouble.hidden = true;
    try {
      const cwd = this.folder.value.trim();
      const body: Start & { worktree?: boolean; config?: object } = { agent: this.chosen, ...(this.model.value ? { model: this.model.value } : {}), ...(cwd ? { cwd } : {}) };
      if (this.copy.checked) body.worktree = true;
      if (this.mode.value !== "ask") body.config = { approvals: this.mode.value };
      const session = await v1.start(body);
      remember("agent", this.chosen);
      if (this.first.value.trim()) await v1.send(session.id, this.first.value, "queue");
      this.shell.go({ at: "session", id: session.id });
    } catch (error) {
      this.button.disabled = false;
      this.say(explain(error));
    }
  }
}

function labelled(text: string, field: HTMLElement): HTMLElement {
  const label = make("label", "", text);
  label.append(field);
  return label;
}
