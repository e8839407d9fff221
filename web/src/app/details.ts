/** What there is to know of a session: agent, folder, settings, cost by turn, remembered answers, connections. */

import { repeat } from "lit-html/directives/repeat.js";
import { root } from "../root";
import { grantsOf, grantWords } from "../conversation/grants";
import { exact } from "../conversation/pieces";
import { duration, who } from "../conversation/words";
import type { Turn } from "../conversation/state";
import { make } from "../page";
import { type Content, html, nothing, render, type TemplateResult } from "../render";
import type { HostUse } from "../rest";
import { ask, type Grant, v1 } from "../v1";
import { DETAILS } from "../texts/details";
import type { OpenSession } from "./view";
import { bytes } from "../bytes";
import { cost, tokens, when } from "../time";
import type { Member } from "../rest";
import { hostOf } from "./where";

/** Of a message: what fits into two lines. */
const MESSAGE = 60;
/** Turns in the table; older ones are in the export. */
const TURNS = 200;

export class Details {
  readonly element = make("div", "details-tab pbody");
  private grants: Grant[] | undefined;
  private host: Member | undefined;
  private hosts: HostUse[] = [];
  private asked = false;

  constructor(private readonly view: OpenSession) {
    this.element.tabIndex = 0; // it scrolls
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", DETAILS.title);
    this.render();
  }

  private async load(): Promise<void> {
    this.asked = true;
    const state = this.view.state;
    const [grants, host, hosts] = await Promise.all([
      v1.grants().catch(() => []),
      state ? hostOf(state.id).catch(() => undefined) : undefined,
      state ? ask("GET /sessions/{id}/network", { id: state.id }).catch(() => undefined) : undefined,
    ]);
    this.grants = state ? grantsOf(state, grants) : [];
    this.host = host;
    this.hosts = hosts?.hosts ?? [];
    this.render();
  }

  render(): void {
    const state = this.view.state;
    if (!state) return;
    if (!this.asked) void this.load(); // a page that begins here has no state yet when this is made
    const used = (state.usage?.input ?? 0) + (state.usage?.output ?? 0);
    const code = (text: string) => html`<code>${text}</code>`;
    const cached = state.usage?.cached ? DETAILS.cached(tokens(state.usage.cached)) : "";
    const facts: [string, Content | undefined][] = [
      [DETAILS.agent, [this.view.agentName, state.model].filter(Boolean).join(" · ")],
      [DETAILS.folder, code(exact(state.cwd))],
      [DETAILS.host, this.host && DETAILS.hostAt(this.host.name, this.host.place, this.host.state)],
      [DETAILS.copy, state.worktree?.branch ? code(exact(String(state.worktree.branch))) : undefined],
      [DETAILS.used, used ? `${tokens(used)}${cached}, ${cost(state.usage?.cost)}` : DETAILS.nothingYet],
      [DETAILS.turns, String(state.turns?.length ?? 0)],
      [DETAILS.session, code(state.id)],
      [DETAILS.from, state.parent ? html`<a href=${`${root}/app/s/${encodeURIComponent(state.parent)}`}>${state.parent}</a>` : undefined],
      ...Object.entries(state.config ?? {}).flatMap(([name, value]): [string, string][] => (typeof value === "object" ? [] : [[name, String(value)]])),
    ];
    const shown = facts.filter(([, value]) => value !== undefined).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`);
    render(html`<dl class="facts-list">${shown}</dl>${this.granted()}${connections(this.hosts)}${this.turns()}`, this.element);
  }

  private granted(): Content {
    if (!this.grants?.length) return nothing;
    const forget = async (grant: Grant) => {
      await this.view.attempt(() => v1.revoke(grant.id));
      await this.load();
    };
    const item = (grant: Grant) => html`<li>${grantWords(grant, this.view.state?.cwd ?? "")}, ${grant.session ? DETAILS.inSession : DETAILS.inFolder}<button type="button" class="link" @click=${() => void forget(grant)}>${DETAILS.forget}</button></li>`;
    return html`<h2>${DETAILS.remembered}</h2><ul class="grants">${repeat(this.grants, ({ id }) => id, item)}</ul>`;
  }

  private turns(): Content {
    const turns = (this.view.state?.turns ?? []).slice(-TURNS);
    if (turns.length === 0) return nothing;
    const cells = (turn: Turn) => {
      const used = (turn.usage?.input ?? 0) + (turn.usage?.output ?? 0);
      return [shortened(turn.message.text), who(turn.by), turn.ended ? duration(turn.ended - turn.started) : DETAILS.running, used ? tokens(used) : DETAILS.unknown, turn.usage?.cost ? cost(turn.usage.cost) : DETAILS.unknown];
    };
    return html`<h2>${DETAILS.turnByTurn}</h2>${tableOf(DETAILS.turnColumns, [...turns].reverse().map(cells))}`;
  }
}

/** The hosts that a session or a job reached, or tried to reach. */
export function connections(hosts: HostUse[]): Content {
  if (hosts.length === 0) return nothing;
  const cells = (use: HostUse) => {
    const by = [...(use.allowed_by ?? []), ...(use.refused_by ?? [])].map((name) => (name === "policy" ? DETAILS.policy : name === "network" ? DETAILS.notReached : who(name)));
    const name = use.host === "*" ? DETAILS.otherHosts : `${exact(use.host)}:${use.port}`;
    const counts = [...(use.count ? [String(use.count)] : []), ...(use.refused ? [DETAILS.refused(use.refused)] : [])].join(", ");
    return [name, counts, `${bytes(use.sent ?? 0)}, ${bytes(use.received ?? 0)}`, when(use.last ?? 0, Date.now()), [...new Set(by)].join(", ")];
  };
  return html`<h2>${DETAILS.network}</h2>${tableOf(DETAILS.hostColumns, hosts.map(cells))}`;
}

const tableOf = (names: readonly string[], rows: string[][]): TemplateResult => html`<table class="table"><tbody><tr>${names.map((name) => html`<th>${name}</th>`)}</tr>${rows.map((cells) => html`<tr>${cells.map((text) => html`<td>${text}</td>`)}</tr>`)}</tbody></table>`;

/** The beginning of a message, to identify it. */
function shortened(text: string): string {
  return text.length > MESSAGE ? `${text.slice(0, MESSAGE).trimEnd()}…` : text;
}
