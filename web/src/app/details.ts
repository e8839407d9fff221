/** What there is to know of a session: agent, folder, settings, cost by turn, remembered answers, connections. */

import { root } from "../root";
import { grantsOf, grantWords } from "../conversation/grants";
import { exact } from "../conversation/pieces";
import { duration, who } from "../conversation/words";
import { make, makeButton } from "../page";
import type { HostUse } from "../rest";
import { ask, type Grant, v1 } from "../v1";
import type { OpenSession } from "./view";
import { bytes } from "../bytes";
import { cost, tokens, when } from "../time";
import { type Host, hostOf } from "./where";

/** Of a message: what fits into two lines. */
const MESSAGE = 60;
/** Turns in the table; older ones are in the export. */
const TURNS = 200;

export class Details {
  readonly element = make("div", "details-tab pbody");
  private grants: Grant[] | undefined;
  private host: Host | undefined;
  private hosts: HostUse[] = [];
  private asked = false;

  constructor(private readonly view: OpenSession) {
    this.element.tabIndex = 0; // it scrolls
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", "Details");
    this.show();
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
    this.show();
  }

  show(): void {
    const state = this.view.state;
    if (!state) return;
    if (!this.asked) void this.load(); // a page that begins here has no state yet when this is made
    const facts = make("dl", "facts-list");
    const add = (name: string, value: string | HTMLElement) => {
      const cell = make("dd");
      cell.append(value);
      facts.append(make("dt", "", name), cell);
    };
    const used = (state.usage?.input ?? 0) + (state.usage?.output ?? 0);
    add("Agent", [this.view.agentName, state.model].filter(Boolean).join(" · "));
    add("Folder", make("code", "", exact(state.cwd)));
    if (this.host) add("Host", `${this.host.name} at ${this.host.place}${this.host.state === "up" ? "" : ` (${this.host.state})`}`);
    if (state.worktree?.branch) add("Own copy", make("code", "", exact(String(state.worktree.branch))));
    add("Used", used ? `${tokens(used)}${state.usage?.cached ? ` (${tokens(state.usage.cached)} from the cache)` : ""}, ${cost(state.usage?.cost)}` : "nothing yet");
    add("Turns", String(state.turns?.length ?? 0));
    add("Session", make("code", "", state.id));
    if (state.parent) {
      const link = make("a", "", state.parent);
      link.href = `${root}/app/s/${encodeURIComponent(state.parent)}`;
      add("Came from", link);
    }
    for (const [name, value] of Object.entries(state.config ?? {})) if (typeof value !== "object") add(name, String(value));
    this.element.replaceChildren(facts, ...this.granted(), ...connections(this.hosts), ...this.turns());
  }

  private granted(): HTMLElement[] {
    const list = make("ul", "grants");
    list.append(
      ...(this.grants ?? []).map((grant) => {
        const item = make("li");
        item.append(`${grantWords(grant, this.view.state?.cwd ?? "")}, ${grant.session ? "in this session" : "in this folder"}`, makeButton("link", "Forget", () => void this.view.attempt(() => v1.revoke(grant.id)).then(() => this.load())));
        return item;
      }),
    );
    return this.grants?.length ? [make("h2", "", "Remembered answers"), list] : [];
  }

  private turns(): HTMLElement[] {
    const turns = (this.view.state?.turns ?? []).slice(-TURNS);
    if (turns.length === 0) return [];
    const table = make("table", "table");
    const head = make("tr");
    head.append(...["Message", "By", "Took", "Tokens", "Cost"].map((name) => make("th", "", name)));
    table.append(head);
    for (const turn of [...turns].reverse()) {
      const row = make("tr");
      const used = (turn.usage?.input ?? 0) + (turn.usage?.output ?? 0);
      const cells = [shortened(turn.message.text), who(turn.by), turn.ended ? duration(turn.ended - turn.started) : "runs", used ? tokens(used) : "unknown", turn.usage?.cost ? cost(turn.usage.cost) : "unknown"];
      row.append(...cells.map((text) => make("td", "", text)));
      table.append(row);
    }
    return [make("h2", "", "Turn by turn"), table];
  }
}

/** The hosts that the sandbox reached or tried to reach. */
export function connections(hosts: HostUse[]): HTMLElement[] {
  if (hosts.length === 0) return [];
  const table = make("table", "table");
  const head = make("tr");
  head.append(...["Host", "Count", "Sent, received", "Last", "By"].map((name) => make("th", "", name)));
  table.append(head);
  for (const use of hosts) {
    const by = [...(use.allowed_by ?? []), ...(use.refused_by ?? [])].map((name) => (name === "policy" ? "the policy" : who(name)));
    const name = use.host === "*" ? "other hosts" : `${exact(use.host)}:${use.port}`;
    const counted = [...(use.count ? [String(use.count)] : []), ...(use.refused ? [`${use.refused} refused`] : [])].join(", ");
    const cells = [name, counted, `${bytes(use.sent ?? 0)}, ${bytes(use.received ?? 0)}`, when(use.last ?? 0, Date.now()), [...new Set(by)].join(", ")];
    const row = make("tr");
    row.append(...cells.map((text) => make("td", "", text)));
    table.append(row);
  }
  return [make("h2", "", "Network"), table];
}

/** The beginning of a message, to identify it. */
function shortened(text: string): string {
  return text.length > MESSAGE ? `${text.slice(0, MESSAGE).trimEnd()}…` : text;
}
