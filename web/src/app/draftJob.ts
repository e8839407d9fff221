/** A workflow that an agent writes from a description. Mistakes go back to it, as often as the host allows. Nothing starts. */

import { explain } from "../failure";
import { html, nothing, type TemplateResult } from "../render";
import { root } from "../root";
import type { AgentInfo, PlannedWorkflow, WorkflowDraft } from "../rest";
import type { Scope } from "../scope";
import { DESCRIBE as TEXTS } from "../texts/startJob";
import { ask, v1 } from "../v1";
import type { BoardStore } from "./boardStore";

/** Survives a reload of the page: the agent continues in its session. */
const KEPT = "portico.draft";
const SETTLE_MS = 300;

export class DraftJob {
  private description = "";
  private agent = "";
  private agents: AgentInfo[] = [];
  private session = sessionStorage.getItem(KEPT) ?? "";
  private state: WorkflowDraft | undefined;
  private trouble = "";
  /** The answer whose mistakes were sent. */
  private corrected = 0;
  private shown = "";
  private readonly refresh: (wait?: number) => void;

  constructor(
    scope: Scope,
    board: BoardStore,
    private readonly folder: () => string,
    private readonly changed: () => void,
    private readonly found: (workflow: PlannedWorkflow) => void,
  ) {
    this.refresh = scope.latest((signal) => ask("GET /workflows/draft/{id}", { id: this.session }, { signal }), (state) => void this.take(state), { failed: (error) => this.failed(error), debounceMs: SETTLE_MS });
    scope.onEnd(board.subscribe(() => this.session && this.state?.running !== false && this.refresh()));
    const load = scope.latest((signal) => v1.offers(signal), ({ agents, default: usual }) => this.offer(agents, usual ?? ""), { failed: () => undefined });
    load();
    if (this.session) this.refresh(0);
  }

  private offer(agents: AgentInfo[], usual: string): void {
    this.agents = agents.filter(({ missing }) => !missing);
    this.agent ||= this.agents.find(({ id }) => id === usual)?.id ?? this.agents[0]?.id ?? "";
    this.changed();
  }

  get working(): boolean {
    return this.session !== "" && !this.trouble && (this.state === undefined || this.state.running || Boolean(this.state.next));
  }

  private async take(state: WorkflowDraft): Promise<void> {
    this.state = state;
    this.trouble = state.error ? TEXTS.failed(state.error) : "";
    const { answers = 0, next, found } = state;
    if (next && this.corrected < answers) {
      this.corrected = answers;
      try {
        await v1.send(this.session, next, "queue");
        this.refresh();
      } catch (error) {
        this.trouble = explain(error);
      }
    } else if (found && !state.running && !next && this.shown !== found.text) {
      this.shown = found.text;
      this.found(found);
    }
    this.changed();
  }

  private failed(error: unknown): void {
    this.trouble = explain(error);
    this.changed();
  }

  private async write(): Promise<void> {
    this.trouble = "";
    try {
      const body = { description: this.description, cwd: this.folder(), ...(this.agent ? { agent: this.agent } : {}) };
      this.session = (await ask("POST /workflows/draft", {}, { body })).session;
      sessionStorage.setItem(KEPT, this.session);
      this.refresh(0);
    } catch (error) {
      this.trouble = explain(error);
    }
    this.changed();
  }

  private reset(): void {
    this.session = this.shown = this.trouble = "";
    this.state = undefined;
    this.corrected = 0;
    sessionStorage.removeItem(KEPT);
    this.changed();
  }

  view(): TemplateResult {
    const trouble = this.trouble ? html`<p class="trouble" role="alert">${this.trouble}</p>` : nothing;
    if (!this.session) return html`${this.form()}${trouble}`;
    const round = (this.state?.answers ?? 0) + 1;
    const mistakes = this.state?.found?.mistakes?.length;
    return html`<div class="draft-state" role="status">
        ${this.working ? html`<span class="spinner" aria-hidden="true"></span><span>${round > 1 ? TEXTS.correcting(round) : TEXTS.writing}</span>` : mistakes ? html`<span>${TEXTS.gaveUp}</span>` : nothing}
        <a href="${root}/app/s/${encodeURIComponent(this.session)}">${TEXTS.open}</a>
        <button type="button" class="quiet" @click=${() => this.reset()}>${TEXTS.again}</button>
      </div>${trouble}`;
  }

  private form(): TemplateResult {
    return html`<div class="describe">
      <p class="soft">${TEXTS.about}</p>
      <label>${TEXTS.label}<textarea id="describe" rows="4" dir="auto" placeholder=${TEXTS.placeholder} .value=${this.description} @input=${(event: Event) => ((this.description = (event.target as HTMLTextAreaElement).value), this.changed())}></textarea></label>
      ${this.agents.length > 1 ? html`<label>${TEXTS.agent}<select id="draft-agent" @change=${(event: Event) => (this.agent = (event.target as HTMLSelectElement).value)}>${this.agents.map(({ id, name }) => html`<option value=${id} ?selected=${id === this.agent}>${name}</option>`)}</select></label>` : nothing}
      <button type="button" class="primary" id="write-draft" ?disabled=${!this.description.trim()} @click=${() => void this.write()}>${TEXTS.write}</button>
    </div>`;
  }
}
