/** Sessions that were started in an agent's own program: a folded group below the list, by folder. A click adopts one. */

import { explain } from "../api";
import { Refused } from "../failure";
import { make, makeButton } from "../page";
import type { FoundPage, FoundSession } from "../rest";
import { askFirst, dialog } from "../shortcuts";
import { when } from "../time";
import { ask } from "../v1";
import { lastName } from "./entries";
import type { BoardStore } from "./boardStore";
import { pathOf } from "./router";
import { style } from "./style";
import { ELSEWHERE } from "../texts/menus";

export class Elsewhere {
  readonly element = make("section", "elsewhere");
  private readonly head: HTMLButtonElement;
  private readonly count = make("span", "group-count");
  private readonly body = make("div", "elsewhere-body");
  private pages: FoundPage[] = [];
  private state: "asking" | "here" | "refused" = "asking";
  private open = false;
  private text = "";

  constructor(
    private readonly board: BoardStore,
    private readonly changed: () => void,
  ) {
    void style("app-places");
    const heading = make("h2");
    this.head = makeButton("group-head", ELSEWHERE.startedElsewhere, () => this.toggle());
    this.head.append(this.count);
    heading.append(this.head);
    this.element.append(heading, this.body);
    void this.load(false);
  }

  /** Shows what fits the words of the filter. False: there is nothing to show. */
  render(text: string): boolean {
    this.text = text;
    const found = this.found();
    this.head.setAttribute("aria-expanded", String(this.open || text !== ""));
    this.count.textContent = found.length ? String(found.length) : "";
    this.body.hidden = !this.open && text === "";
    if (!this.body.hidden) this.body.replaceChildren(...this.rows(found));
    return this.state !== "refused" && (text === "" || found.length > 0);
  }

  private found(): FoundSession[] {
    const words = this.text.toLowerCase().split(" ").filter((word) => word && !word.includes(":"));
    const all = this.pages.flatMap(({ sessions = [] }) => sessions).sort((one, other) => (other.updated ?? 0) - (one.updated ?? 0));
    return all.filter(({ title = "", cwd = "", agent }) => words.every((word) => `${title} ${cwd} ${agent}`.toLowerCase().includes(word)));
  }

  private toggle(): void {
    this.open = !this.open;
    if (this.open) void this.load(true);
    this.changed();
  }

  /** `start`: also asks agents whose program does not run. The page alone never starts them. */
  private async load(start: boolean): Promise<void> {
    this.state = "asking";
    try {
      this.pages = (await ask("GET /native-sessions", {}, { query: start ? {} : { start: "false" } })).agents;
      this.state = "here";
    } catch {
      this.state = "refused"; // no permission, or an older host
    }
    this.changed();
  }

  private rows(found: FoundSession[]): HTMLElement[] {
    const folders = new Map<string, FoundSession[]>();
    for (const each of found) folders.set(each.cwd ?? "", [...(folders.get(each.cwd ?? "") ?? []), each]);
    const rows = [...folders].flatMap(([folder, sessions]) => {
      const name = make("h3", "elsewhere-folder", lastName(folder) || ELSEWHERE.noFolder);
      name.title = folder;
      return [name, ...sessions.map((each) => this.row(each))];
    });
    const problems = this.pages.filter(({ problem }) => problem).map(({ agent, problem }) => make("p", "soft elsewhere-note", `${this.board.agentName(agent)}: ${problem}`));
    if (this.state === "asking") return [make("p", "soft elsewhere-note", ELSEWHERE.askingTheAgents), ...rows];
    return rows.length || problems.length ? [...rows, ...problems] : [make("p", "soft elsewhere-note", ELSEWHERE.noSessionsOfOtherPrograms)];
  }

  private row(session: FoundSession): HTMLElement {
    const button = makeButton("entry elsewhere-row", "", () => void adopt(session, () => this.load(false)));
    const sub = make("span", "sub");
    sub.append(make("span", "act", session.open ? ELSEWHERE.openElsewhere : this.board.agentName(session.agent)), ` ${session.updated ? when(session.updated, Date.now()) : ""}`);
    button.append(make("span", "t", session.title || session.id), sub);
    button.title = ELSEWHERE.adoptThisSession(this.board.agentName(session.agent));
    return button;
  }
}

/** Adopts the session and opens it. One that is open elsewhere needs a confirmation. */
async function adopt({ agent, id, cwd = "" }: FoundSession, done: () => Promise<void>, confirm = false): Promise<void> {
  try {
    const session = await ask("POST /sessions/adopt", {}, { body: { agent, native: id, cwd, confirm } });
    await done();
    window.history.pushState(null, "", pathOf({ at: "session", id: session.id }));
    window.dispatchEvent(new PopStateEvent("popstate"));
  } catch (error) {
    if (error instanceof Refused && error.field === "confirm") {
      return askFirst(ELSEWHERE.thisSessionIsOpenElsewhere, ELSEWHERE.itChangedAFewSeconds, ELSEWHERE.adoptItAnyway, () => adopt({ agent, id, cwd }, done, true));
    }
    report(ELSEWHERE.theSessionWasNotAdopted, explain(error));
  }
}

/** The command that continues a session in the agent's own program, with a button that copies it. */
export async function showCommand(id: string): Promise<void> {
  const { command } = await ask("POST /sessions/{id}/native", { id }, { body: {} });
  const box = dialog(ELSEWHERE.continueInTheTerminal);
  box.addEventListener("close", () => box.remove());
  const copy = makeButton("primary", ELSEWHERE.copy, () => void navigator.clipboard.writeText(command).then(() => (copy.textContent = ELSEWHERE.copied)));
  const row = make("div", "answers");
  row.append(copy);
  box.append(make("p", "", ELSEWHERE.runThisOnTheHosts), make("code", "native-line", command), row);
  box.showModal();
}

function report(title: string, text: string): void {
  const box = dialog(title);
  box.append(make("p", "trouble", text));
  box.addEventListener("close", () => box.remove());
  box.showModal();
}
