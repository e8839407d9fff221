/** A new session: the box to write in, with the folder and the agents above it, and what the chosen agent lacks. */

import { root } from "../root";
import { explain } from "../api";
import { commandsOf, commandView } from "../commands";
import { folder } from "../conversation/words";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { type About, type Agent, type AgentModel, type Agents, type KnownAgent, type StartSessionBody, v1 } from "../v1";
import { icon } from "../icons";
import { MessageBox, post } from "./messageBox";
import { remember, remembered } from "./preferences";
import { SandboxField } from "./sandboxPick";
import type { View, ViewContext } from "./view";
import { offerWhere, type Where } from "./where";
import { START } from "../texts/start";

/** Folders that were worked in lately. */
const FOLDERS = 8;
/** Of those, so many are shown below the field. */
const RECENT = 6;
const DRAFT = "draft.new";
/** The scripted agent that every host has. */
const DEMO = "demo";

export class NewSession implements View {
  readonly element = make("section", "place");
  readonly title = START.newSession;
  private readonly scope = new Scope();

  constructor(context: ViewContext) {
    const head = make("header", "head");
    const back = makeButton("icon back", "", () => context.go({ at: "home" }));
    back.append(icon("back"));
    back.setAttribute("aria-label", START.backToTheList);
    const text = make("div", "head-text");
    text.append(make("h1", "", START.newSession), make("p", "", START.oneAgentOneFolderIt));
    const job = make("a", "button", START.startAJob);
    job.href = `${root}/app/new/job`;
    head.append(back, text, job);
    const scroll = make("div", "scroll new-session");
    scroll.append(new StartBox(context, this.scope).element);
    this.element.append(head, scroll);
  }

  leave(): void {
    this.scope.end();
  }
}

class StartBox extends MessageBox {
  private readonly agents = make("div", "agents-choice");
  private readonly folder = make("input");
  private readonly recent = make("div", "chips recent");
  private readonly copy = make("input");
  private readonly missing = make("div", "missing");
  private readonly connect = make("section", "connect");
  private readonly trouble = make("p", "trouble");
  private where: () => Where = () => ({});
  private known: Agent[] = [];
  private chosen = "";
  private begun: { key: string; id: string } | undefined;

  private readonly load: () => void;
  private readonly sandbox: SandboxField;

  constructor(
    private readonly context: ViewContext,
    scope: Scope,
  ) {
    super((text) => this.showProblem(text));
    this.element.className = "start-box";
    this.area.id = "first";
    this.area.setAttribute("aria-label", START.whatShouldTheAgentDo);
    this.area.placeholder = START.findOutWhyTheLogin;
    this.area.addEventListener("input", () => remember(DRAFT, this.area.value || undefined));
    this.model.id = "model";
    this.mode.id = "mode";
    this.button.id = "start";
    this.button.setAttribute("aria-label", START.start);
    this.button.title = START.start;
    this.button.disabled = true;
    this.folder.id = "folder";
    this.folder.setAttribute("list", "folders");
    this.folder.spellcheck = false;
    this.folder.autocomplete = "off";
    this.folder.placeholder = START.anAbsolutePath;
    this.folder.addEventListener("input", () => this.moved());
    this.recent.setAttribute("role", "group");
    this.recent.setAttribute("aria-label", START.foldersUsedLast);
    this.agents.id = "agents";
    this.agents.setAttribute("role", "radiogroup");
    this.agents.setAttribute("aria-label", START.agent);
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    this.sandbox = new SandboxField(scope, () => ({ cwd: this.folder.value.trim(), agent: this.chosen }));
    this.tools.append(this.sandbox.element, this.ownCopy(), make("span", "spring"), this.button);
    const where = make("label", "start-folder", START.folder);
    where.append(this.folder);
    this.connect.hidden = true;
    this.box.before(this.connect, make("h2", "", START.whatShouldTheAgentDo), where, this.recent, this.agents, this.missing);
    this.box.after(this.trouble);
    this.put(remembered(DRAFT) ?? "");
    this.load = scope.latest((signal) => Promise.all([v1.offers(signal), v1.about(signal)]), ([offers, about]) => void this.take(offers, about), { failed: (error) => this.failed(error) });
    this.load();
    void offerWhere(this.agents, where.className, scope.signal).then((found) => (this.where = found));
  }

  private ownCopy(): HTMLElement {
    this.copy.type = "checkbox";
    this.copy.id = "own-copy";
    const label = make("label", "own-copy");
    label.title = START.theAgentWorks;
    label.append(this.copy, make("span", "", START.workInASeparateCopy));
    return label;
  }

  protected changed(): void {}

  /** A session of the same folder knows its files; one of the same agent its commands. No line is run before there is a session. */
  protected suggestedBy(sign: string): string {
    const cwd = this.folder.value.trim();
    const knows = [...this.context.board.rows.values()].find(({ session }) => session.cwd === cwd && (sign === "@" || (sign === "/" && session.agent === this.chosen)));
    return knows?.session.id ?? "";
  }

  private async take({ agents, default: usual, known = [] }: Agents, about: About): Promise<void> {
    if (this.failing) this.showProblem("");
    this.failing = false;
    // Agents that are ready come first; otherwise the order of the host.
    this.known = [...agents].sort((one, other) => Number(Boolean(one.missing)) - Number(Boolean(other.missing)));
    const wanted = new URLSearchParams(window.location.search).get("agent") ?? (this.chosen || remembered("agent"));
    const found = this.known.find(({ id }) => id === wanted) ?? this.known.find(({ id, missing }) => id === usual && !missing) ?? this.known[0];
    this.fillFolders(about.workspaces);
    await this.offerAgents(known);
    this.showAgents(found?.id ?? "");
    this.choose(found?.id ?? "");
    if (document.activeElement === document.body && this.connect.hidden) this.area.focus();
  }

  private failing = false;

  private failed(error: unknown): void {
    this.failing = true;
    this.showProblem(explain(error));
  }

  /** On a machine without a coding agent the first thing to see is how to get one. Its code is loaded for that. */
  private async offerAgents(known: KnownAgent[]): Promise<void> {
    this.connect.hidden = this.known.some(({ id, missing }) => id !== DEMO && !missing);
    if (this.connect.hidden) return;
    const { connectCards } = await import("./connect");
    const demo = this.known.some(({ id }) => id === DEMO) ? () => this.tryDemo() : undefined;
    this.connect.replaceChildren(make("h2", "", START.noCodingAgentWasFound), connectCards(known, async () => this.load(), demo));
  }

  private tryDemo(): void {
    this.showAgents(DEMO);
    this.choose(DEMO);
    this.put("help");
    this.area.focus();
  }

  private fillFolders(workspaces: string[]): void {
    const recent = [...this.context.board.rows.values()].sort((one, other) => other.session.modified - one.session.modified).map(({ session }) => session.cwd);
    const all = [...new Set([...recent, ...workspaces])].filter((path) => !path.includes(".worktrees/")).slice(0, FOLDERS);
    const list = make("datalist");
    list.id = "folders";
    list.append(...all.map((path) => new Option(path, path)));
    this.element.querySelector("datalist")?.remove();
    this.element.append(list);
    if (!this.folder.value) this.folder.value = new URLSearchParams(window.location.search).get("folder") ?? all[0] ?? "";
    this.showRecent(all.slice(0, RECENT));
  }

  /** A field that is filled in suggests nothing, so the folders used last are below it. */
  private showRecent(paths: string[]): void {
    this.recent.hidden = paths.length < 2;
    this.recent.replaceChildren(
      ...paths.map((path) => {
        const chip = makeButton("chip", folder(path), () => {
          this.folder.value = path;
          this.moved();
        });
        chip.title = path;
        return chip;
      }),
    );
    this.markRecent();
  }

  private moved(): void {
    this.markRecent();
    this.sandbox.refresh();
  }

  private markRecent(): void {
    for (const chip of this.recent.querySelectorAll<HTMLElement>("button")) chip.setAttribute("aria-pressed", String(chip.title === this.folder.value.trim()));
  }

  private showAgents(chosen: string): void {
    this.agents.replaceChildren(
      ...this.known.map((agent) => {
        const input = make("input");
        input.type = "radio";
        input.name = "agent";
        input.value = agent.id;
        input.checked = agent.id === chosen;
        input.addEventListener("change", () => this.choose(agent.id));
        const label = make("label", `agent-choice ${agent.missing ? "lacking" : ""}`);
        const tag = agent.label && agent.label.toLowerCase() !== agent.name.toLowerCase() ? ` (${agent.label})` : "";
        label.append(input, make("span", "", agent.name + tag), ...(agent.missing ? [make("small", "pill need", "not ready")] : []));
        return label;
      }),
    );
    if (this.known.length === 0) this.agents.append(make("p", "", START.thisHostHasNoAgent), commandView("portico doctor"));
  }

  private choose(id: string): void {
    this.chosen = id;
    const agent = this.known.find((each) => each.id === id);
    this.fillModels(agent, firstModel(agent?.models ?? [], remembered(`model.${id}`)));
    const hint = agent?.missing ?? "";
    this.missing.hidden = !hint;
    this.missing.replaceChildren(...(hint ? [make("p", "", hint), ...commandsOf(hint).map(commandView), this.checkAgain(id)] : []));
    this.button.disabled = Boolean(hint) || !agent;
    if (id) this.sandbox.refresh(0);
  }

  /** The host starts the agent and exchanges the first messages: that proves more than a look at the disk. */
  private checkAgain(id: string): HTMLElement {
    const button = makeButton("", START.checkAgain, async () => {
      button.disabled = true;
      button.textContent = START.checking;
      try {
        const { status, detail } = await v1.checkAgent(id);
        if (status !== "ready" && detail) this.showProblem(detail);
      } catch {
        // A host that cannot check still knows what is missing.
      }
      this.load();
    });
    return button;
  }

  private showProblem(text: string): void {
    this.trouble.textContent = text;
    this.trouble.hidden = text === "";
  }

  protected submit(): void {
    if (!this.button.disabled) void this.begin();
  }

  private async begin(): Promise<void> {
    this.button.disabled = true;
    this.trouble.hidden = true;
    try {
      const [cwd, model] = [this.folder.value.trim(), this.model.value];
      const body: StartSessionBody = { agent: this.chosen, ...(model ? { model } : {}), ...(cwd ? { cwd } : {}) };
      if (this.copy.checked) body.worktree = true;
      Object.assign(body, this.where());
      const config = { ...(this.mode.value !== "ask" ? { approvals: this.mode.value } : {}), ...this.sandbox.config };
      if (Object.keys(config).length > 0) body.config = config;
      // One that began and whose message was not taken is used again, and not begun twice.
      const key = JSON.stringify(body);
      if (this.begun?.key !== key) this.begun = { key, id: (await v1.start(body)).id };
      const { id } = this.begun;
      remember("agent", this.chosen);
      remember(`model.${this.chosen}`, model || undefined);
      if (this.area.value.trim() || this.attached.length > 0) await post(id, this.area.value, "queue", this.attached);
      remember(DRAFT, undefined);
      this.context.go({ at: "session", id });
    } catch (error) {
      this.button.disabled = false;
      this.showProblem(explain(error));
    }
  }
}

/** The model used last, else the agent's default, so that the first entry is not chosen by accident. */
export function firstModel(models: AgentModel[], last: string | undefined): string {
  if (last !== undefined && models.some(({ id }) => id === last)) return last;
  const dearest = Math.max(...models.map(({ multiplier = 1 }) => multiplier));
  return (models.find(({ multiplier = 1 }) => multiplier < dearest) ?? models[0])?.id ?? "";
}
