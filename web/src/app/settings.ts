/** Settings of this device, and for the owner of the host: tokens, the audit record, its settings, its end. */

import { root } from "../root";
import { html, render } from "../render";
import { request, Scope } from "../scope";
import { api, explain } from "../api";
import { notificationButton } from "../notifications";
import { who } from "../conversation/words";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import type { AuditPage, Member } from "../rest";
import { ask, v1 } from "../v1";
import { HostSettings } from "./hostSettings";
import { icon, type Icon } from "../icons";
import { confirm } from "./confirm";
import { auditLines } from "./auditLines";
import { showPeople, whose } from "./people";
import { preferences, type Preferences, setPreference } from "./preferences";
import { endPush, pushRow } from "./push";
import { pathOf, type Place } from "./router";
import type { Row } from "./entries";
import type { Listed, View, ViewContext } from "./view";
import { row, tableOf, wrap } from "./table";
import { plural } from "../texts/plural";
import { when } from "../time";

const SECTIONS: [id: string, name: string, icon: Icon][] = [
  ["look", "This device", "theme"],
  ["agents", "Agents", "think"],
  ["devices", "Devices", "panel"],
  ["tokens", "Tokens", "shield"],
  ["people", "People", "chats"],
  ["audit", "Audit", "note"],
  ["hosts", "Hosts", "arch"],
  ["host", "This host", "settings"],
];
/** Lines of the audit record that are shown. */
const MOST_AUDIT = 500;
const SCOPES: [scope: string, about: string][] = [
  ["read", "see sessions and jobs"],
  ["drive", "start sessions, send messages, stop turns"],
  ["approve", "answer approvals and questions"],
  ["files", "read and change files"],
  ["terminal", "open shells"],
  ["jobs", "start and stop jobs"],
  ["admin", "tokens, settings, audit"],
];

export class SettingsView implements View {
  readonly element = make("section", "place settings");
  readonly title: string;
  private readonly body = make("div", "section");
  private readonly scope = new Scope();
  private readonly refresh: () => void;
  /** Of the request that runs. */
  private signal: AbortSignal | undefined;
  /** A new token, shown once. */
  private made: HTMLElement[] = [];

  constructor(
    section: string,
    private readonly context: ViewContext,
    places: Listed[] = [],
  ) {
    const known = SECTIONS.find(([id]) => id === section);
    this.title = section === "more" ? "More" : `Settings: ${known?.[1] ?? "This device"}`;
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", section === "more" ? "More" : "Settings"), make("p", "", known?.[1] ?? ""));
    head.append(text);
    const wide = make("div", "wide");
    const nav = make("nav", "settings-nav");
    nav.setAttribute("aria-label", "Settings");
    nav.append(
      ...SECTIONS.map(([id, name]) => {
        const link = make("a", "", name);
        link.href = pathOf({ at: "settings", section: id });
        if (id === section) {
          link.setAttribute("aria-current", "page");
          // On a phone the row of sections scrolls.
          requestAnimationFrame(() => link.scrollIntoView?.({ inline: "center", block: "nearest" }));
        }
        return link;
      }),
    );
    wide.append(...(section === "more" ? [this.more(places)] : [nav]), this.body);
    const scroll = make("div", "scroll");
    scroll.append(wide);
    this.element.append(head, scroll);
    this.refresh = this.scope.latest(
      (signal) => {
        this.signal = signal;
        return this.load(known?.[0] ?? "look");
      },
      (found) => this.render(found),
      { failed: (error) => this.render([make("p", "trouble", explain(error))]) },
    );
    if (section !== "more") this.refresh();
  }

  leave(): void {
    this.scope.end();
  }

  private render(found: Node[]): void {
    render(html`${found}`, this.body);
  }

  /** The places that have no room in a phone's bar. */
  private more(places: Listed[]): HTMLElement {
    const list = make("div", "stack");
    const add = (name: Icon, text: string, place: Place) => {
      const link = make("a", "navitem");
      link.href = pathOf(place);
      link.append(icon(name), make("span", "", text));
      list.append(link);
    };
    add("plus", "New session", { at: "new", what: "session" });
    add("jobs", "Start a job", { at: "new", what: "job" });
    for (const { row, place } of places) add(row.icon, row.title, place);
    for (const [section, name, look] of SECTIONS) add(look, name, { at: "settings", section });
    return list;
  }

  private async load(section: string): Promise<Node[]> {
    switch (section) {
      case "look":
        return this.appearance();
      case "agents":
        return this.agents();
      case "devices":
        return (await import("./devices")).devicesSection(this.refresh);
      case "tokens":
        return this.tokens();
      case "audit":
        return this.audit();
      case "people":
        return this.people();
      case "hosts":
        return this.hosts();
      default:
        return this.host();
    }
  }

  // -- this device --------------------------------------------------------------------------------------------------

  private appearance(): Node[] {
    const choice = <K extends keyof Preferences>(name: K, label: string, options: [value: string, text: string][], read: (value: string) => Preferences[K]) => {
      const field = make("select");
      field.id = `setting-${name}`;
      field.append(...options.map(([value, text]) => new Option(text, value)));
      field.value = String(preferences()[name]);
      field.addEventListener("change", () => setPreference(name, read(field.value)));
      const row = make("div", "row-field");
      const title = make("label", "", label);
      title.htmlFor = field.id;
      row.append(title, field);
      return row;
    };
    const notices = makeButton("", "", () => undefined);
    notificationButton(notices);
    const push = make("div");
    void pushRow().then((row) => push.append(row), (error) => push.append(make("p", "trouble", explain(error))));
    return [
      make("h2", "", "How it looks"),
      choice("theme", "Colors", [["system", "System"], ["light", "Light"], ["dark", "Dark"]], (value) => value as Preferences["theme"]),
      choice("contrast", "Contrast", [["system", "System"], ["more", "High"]], (value) => value as Preferences["contrast"]),
      choice("sideBySide", "Changes", [["auto", "Automatic"], ["false", "Unified"], ["true", "Side by side"]], (value) => (value === "auto" ? "auto" : value === "true")),
      make("h2", "", "Writing and keys"),
      choice("enterSends", "Enter", [["true", "Send (Shift+Enter: new line)"], ["false", "New line (Ctrl+Enter: send)"]], (value) => value === "true"),
      choice("letters", "Single-letter shortcuts", [["true", "On"], ["false", "Off"]], (value) => value === "true"),
      make("h2", "", "Notices"),
      make("p", "soft", "Notify me while Portico is in the background:"),
      notices,
      make("p", "soft", "On this device, also when no page is open:"),
      push,
      make("h2", "", "This login"),
      makeButton("", "Log out", () => void this.logOut()),
    ];
  }

  private async logOut(): Promise<void> {
    await endPush();
    await request(`${root}/logout`, { method: "POST" });
    window.location.assign(`${root}/login`);
  }

  // -- agents -------------------------------------------------------------------------------------------------------

  private async agents(): Promise<Node[]> {
    const [{ agents, known = [] }, { connectCards }] = await Promise.all([v1.offers(this.signal), import("./connect")]);
    const table = tableOf(["Agent", "State", "Models", ""]);
    for (const agent of agents) {
      const status = make("span", agent.missing ? "bad" : "good", agent.missing ?? "Ready");
      const check = makeButton("", "Check", async () => {
        check.disabled = true;
        status.textContent = "Starting it…";
        try {
          const found = await v1.checkAgent(agent.id);
          status.className = found.status === "ready" ? "good" : "bad";
          status.textContent = found.status === "ready" ? "Ready: it answered" : (found.detail || found.status);
        } catch (error) {
          status.className = "bad";
          status.textContent = explain(error);
        }
        check.disabled = false;
      });
      check.setAttribute("aria-label", `Check ${agent.name}`);
      row(table, agent.name, status, String(agent.models?.length ?? 0), check);
    }
    return [make("h2", "", "Agents"), wrap(table), make("h2", "", "Add an agent or a model"), connectCards(known, async () => this.refresh())];
  }

  // -- tokens -------------------------------------------------------------------------------------------------------

  private async tokens(): Promise<Node[]> {
    const { tokens } = await ask("GET /tokens", {}, { signal: this.signal });
    const table = tableOf(["Name", "Permissions", "Created", "Expires", ""]);
    for (const token of tokens) {
      const end = makeButton("danger", "Revoke…", () => confirm(`Revoke ${token.name}?`, "Its logins and open connections end within a second. This cannot be undone.", "Revoke", () => void this.revoke(token.name)));
      end.setAttribute("aria-label", `Revoke ${token.name}`);
      row(table, token.name, token.scopes.join(", "), date(token.created), endOf(token.expires), end);
    }
    return [make("h2", "", "Tokens"), make("p", "soft", "Your own token, which the host printed, is not in this list. Give a phone or a script only the permissions it needs."), tokens.length ? wrap(table) : make("p", "", "No other tokens."), this.newToken(), ...this.made.splice(0)];
  }

  private newToken(): HTMLElement {
    const form = make("form", "stack");
    const name = make("input");
    name.required = true;
    name.pattern = "[A-Za-z0-9_\\-]{1,64}";
    name.placeholder = "phone";
    const label = make("label", "", "Name");
    label.append(name);
    const boxes = SCOPES.map(([scope, about]) => {
      const box = make("input");
      box.type = "checkbox";
      box.value = scope;
      box.checked = scope === "read";
      const line = make("label", "check");
      line.append(box, make("b", "", scope), about);
      return [box, line] as const;
    });
    const lasts = make("select");
    lasts.append(new Option("Until it is revoked", ""), new Option("1 day", "1"), new Option("7 days", "7"), new Option("30 days", "30"), new Option("90 days", "90"), new Option("1 year", "365"));
    lasts.value = "90";
    const lasting = make("label", "", "Expires in");
    lasting.append(lasts);
    const status = make("div");
    const button = make("button", "primary", "Create token");
    const foot = make("div", "answers");
    foot.append(button);
    form.append(make("h2", "", "New token"), label, lasting, ...boxes.map(([, line]) => line), foot, status);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const scopes = boxes.flatMap(([box]) => (box.checked ? [box.value] : []));
        const { token } = await ask("POST /tokens", {}, { body: { name: name.value, scopes, ...(lasts.value ? { days: Number(lasts.value) } : {}) } });
        const once = make("div", "token-once");
        once.append(make("b", "", "Copy it now: it is shown this once."), make("code", "", token), make("span", "soft", `Login link: ${window.location.origin}/login?tkn=…`));
        once.setAttribute("aria-label", `The token ${name.value}`);
        once.setAttribute("role", "group");
        this.made = [once];
        this.refresh();
      } catch (error) {
        status.replaceChildren(make("p", "bad", explain(error)));
      }
    });
    return form;
  }

  private async revoke(name: string): Promise<void> {
    try {
      await ask("DELETE /tokens/{id}", { id: name });
      this.refresh();
    } catch (error) {
      this.body.prepend(make("p", "trouble", explain(error)));
    }
  }

  // -- people -------------------------------------------------------------------------------------------------------

  /** Whose sessions there are, also of people whom the host does not know by name (any more). */
  private async people(): Promise<Node[]> {
    const { sessions } = (await ask("GET /sessions", {}, { signal: this.signal })) as { sessions: Row["session"][] };
    const all = new Map<string, Row["session"][]>();
    for (const session of sessions) {
      const name = whose(session);
      if (!name) continue; // of a job or an automation, which are no people
      all.set(name, [...(all.get(name) ?? []), session]);
    }
    const table = tableOf(["Who", "Sessions", "Working", "Needs attention", "Last active"]);
    for (const [name, own] of [...all].sort(([one], [other]) => one.localeCompare(other))) {
      const link = make("a", "", name);
      link.href = `${root}/app?filter=${encodeURIComponent(`by:${name}`)}`;
      const count = (status: string) => String(own.filter((each) => each.status === status).length || "");
      const last = Math.max(0, ...own.map(({ modified }) => modified));
      row(table, link, String(own.length), count("running"), count("waiting"), last ? when(last, Date.now()) : "");
    }
    const people = make("div");
    await showPeople(people);
    return [people, make("h2", "", "Sessions of people"), make("p", "soft", "Select a name to list that person's sessions."), wrap(table)];
  }

  // -- hosts --------------------------------------------------------------------------------------------------------

  private async hosts(): Promise<Node[]> {
    const about = await v1.about(this.signal);
    const found = await ask("GET /hosts", {}, { signal: this.signal });
    const working = [...this.context.board.rows.values()].filter(({ session }) => session.status === "running").length;
    const mine: Member = { id: 0, name: window.location.host, place: "", version: about.version, state: about.log.down ?? "up", sessions: this.context.board.rows.size, running: working, seen: Date.now() };
    const alone = found.hosts.length === 0;
    const hosts = alone ? [mine] : found.hosts;
    const table = tableOf(["Host", "Place", "Labels", "State", "Sessions", "Working", "Version", "Seen"]);
    for (const { name, place, labels = [], state, sessions = 0, running = 0, capacity, version = "", seen, here } of hosts) {
      row(table, here ? `${name} (answers here)` : name, place, labels.join(", "), state, String(sessions), capacity ? `${running} of ${capacity}` : String(running), version, seen ? when(seen, Date.now()) : "");
    }
    return [make("h2", "", alone ? "One host" : `${hosts.length} hosts`), wrap(table), ...(alone ? [make("p", "soft", "This host has its log to itself. Several hosts on one log are listed here.")] : [])];
  }

  // -- audit --------------------------------------------------------------------------------------------------------

  private async audit(): Promise<Node[]> {
    const all: { time: number; action: string; by: string; detail?: object }[] = [];
    for (let after: number | null | undefined = 0, pages = 0; typeof after === "number" && pages < 50; pages++) {
      const page: AuditPage = await ask("GET /audit", {}, { query: { after: String(after), limit: "1000" }, signal: this.signal });
      all.push(...(page.audit as unknown as typeof all));
      after = page.next;
    }
    const table = tableOf(["When", "What", "Who", "About"]);
    const lines = auditLines(all.reverse());
    for (const { time, action, by, detail, times } of lines.slice(0, MOST_AUDIT)) row(table, moment(time), times > 1 ? `${action} (${times} times)` : action, who(by), inWords(detail ?? {}));
    return [make("h2", "", "Audit record"), make("p", "soft", lines.length > MOST_AUDIT ? `The newest ${MOST_AUDIT} lines of ${all.length} records.` : `${plural(all.length, "record")}, newest first.`), wrap(table)];
  }

  // -- the host -----------------------------------------------------------------------------------------------------

  private async host(): Promise<Node[]> {
    const [about, found] = await Promise.all([v1.about(this.signal), ask("GET /settings", {}, { signal: this.signal })]);
    return [make("h2", "", `${window.location.host} · version ${about.version}`), new HostSettings(found).element, this.stopServer()];
  }

  /** Separate, at the end, and confirmed by typing a name, so that no one stops a host by accident. */
  private stopServer(): HTMLElement {
    const zone = make("section", "danger-zone");
    const name = window.location.hostname;
    zone.append(
      make("h2", "", "Stop the host"),
      make("p", "", "Running turns are interrupted and can be resumed after the next start. The host is unavailable until it is started again on its machine."),
      makeButton("danger", "Stop the host…", () => {
        const box = dialog("Stop the host?");
        box.addEventListener("close", () => box.remove());
        const form = make("form", "stack");
        const field = make("input");
        field.autocomplete = "off";
        const label = make("label", "", `Type ${name} to confirm`);
        label.append(field);
        const go = make("button", "danger", "Stop the host");
        go.disabled = true;
        field.addEventListener("input", () => (go.disabled = field.value !== name));
        form.append(label, go);
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          if (field.value !== name) return;
          box.close();
          void api.stopServer().then(
            () => this.context.titled("Stopped", this),
            (error: unknown) => this.body.prepend(make("p", "trouble", explain(error))),
          );
        });
        box.append(form);
        box.showModal();
        field.focus();
      }),
    );
    return zone;
  }
}

const date = (time: number) => new Date(time).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
/** To the second: what an audit is read for. */
const moment = (time: number) => new Date(time).toLocaleString([], { day: "numeric", month: "short", hour: "numeric", minute: "2-digit", second: "2-digit" });

function endOf(expires = 0): HTMLElement {
  if (!expires) return make("span", "soft", "never");
  return expires > Date.now() ? make("span", "", date(expires)) : make("span", "bad", `ended ${date(expires)}`);
}


/** What an audit record is about, a name and a value after the other. */
function inWords(detail: object): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(" · ");
}

