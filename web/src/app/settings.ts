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
import { when } from "../time";
import { SETTINGS } from "../texts/settings";

const SECTIONS: [id: string, name: string, icon: Icon][] = [
  ["look", SETTINGS.thisDevice, "theme"],
  ["agents", SETTINGS.agents, "think"],
  ["devices", SETTINGS.devices, "panel"],
  ["tokens", SETTINGS.tokens, "shield"],
  ["people", SETTINGS.people, "chats"],
  ["audit", SETTINGS.audit, "note"],
  ["hosts", SETTINGS.hosts, "arch"],
  ["host", SETTINGS.thisHost, "settings"],
];
/** Lines of the audit record that are shown. */
const MOST_AUDIT = 500;
const SCOPES: [scope: string, about: string][] = [
  ["read", SETTINGS.seeSessionsAndJobs],
  ["drive", SETTINGS.startSessionsSendMessages],
  ["approve", SETTINGS.answerApprovalsAndQuestions],
  ["files", SETTINGS.readAndChangeFiles],
  ["terminal", "open shells"],
  ["jobs", SETTINGS.startAndStopJobs],
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
    this.title = section === "more" ? SETTINGS.more : SETTINGS.titleOf(known?.[1] ?? SETTINGS.thisDevice);
    const head = make("header", "head");
    const text = make("div", "head-text");
    text.append(make("h1", "", section === "more" ? SETTINGS.more : SETTINGS.settings), make("p", "", known?.[1] ?? ""));
    head.append(text);
    const wide = make("div", "wide");
    const nav = make("nav", "settings-nav");
    nav.setAttribute("aria-label", SETTINGS.settings);
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
    add("plus", SETTINGS.newSession, { at: "new", what: "session" });
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
      make("h2", "", SETTINGS.howItLooks),
      choice("theme", SETTINGS.colors, [["system", SETTINGS.system], ["light", SETTINGS.light], ["dark", SETTINGS.dark]], (value) => value as Preferences["theme"]),
      choice("contrast", SETTINGS.contrast, [["system", SETTINGS.system], ["more", SETTINGS.high]], (value) => value as Preferences["contrast"]),
      choice("sideBySide", SETTINGS.changes, [["auto", SETTINGS.automatic], ["false", SETTINGS.unified], ["true", SETTINGS.sideBySide]], (value) => (value === "auto" ? "auto" : value === "true")),
      make("h2", "", SETTINGS.writingAndKeys),
      choice("enterSends", "Enter", [["true", SETTINGS.sendShiftEnterNewLine], ["false", SETTINGS.newLineCtrlEnterSend]], (value) => value === "true"),
      choice("letters", SETTINGS.singleLetterShortcuts, [["true", SETTINGS.on], ["false", SETTINGS.off]], (value) => value === "true"),
      make("h2", "", SETTINGS.notices),
      make("p", "soft", SETTINGS.notifyMeWhilePortico),
      notices,
      make("p", "soft", SETTINGS.onThisDeviceAlso),
      push,
      make("h2", "", SETTINGS.thisLogin),
      makeButton("", SETTINGS.logOut, () => void this.logOut()),
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
    const table = tableOf([SETTINGS.agent, SETTINGS.state, SETTINGS.models, ""]);
    for (const agent of agents) {
      const status = make("span", agent.missing ? "bad" : "good", agent.missing ?? SETTINGS.ready);
      const check = makeButton("", SETTINGS.check, async () => {
        check.disabled = true;
        status.textContent = SETTINGS.startingIt;
        try {
          const found = await v1.checkAgent(agent.id);
          status.className = found.status === "ready" ? "good" : "bad";
          status.textContent = found.status === "ready" ? SETTINGS.readyItAnswered : (found.detail || found.status);
        } catch (error) {
          status.className = "bad";
          status.textContent = explain(error);
        }
        check.disabled = false;
      });
      check.setAttribute("aria-label", SETTINGS.checkNamed(agent.name));
      row(table, agent.name, status, String(agent.models?.length ?? 0), check);
    }
    return [make("h2", "", SETTINGS.agents), wrap(table), make("h2", "", SETTINGS.addAnAgent), connectCards(known, async () => this.refresh())];
  }

  // -- tokens -------------------------------------------------------------------------------------------------------

  private async tokens(): Promise<Node[]> {
    const { tokens } = await ask("GET /tokens", {}, { signal: this.signal });
    const table = tableOf([SETTINGS.name, SETTINGS.permissions, SETTINGS.created, SETTINGS.expires, ""]);
    for (const token of tokens) {
      const end = makeButton("danger", SETTINGS.revoke, () => confirm(SETTINGS.revokeQuestion(token.name), SETTINGS.itsLoginsAndOpenConnections, SETTINGS.revokeText, () => void this.revoke(token.name)));
      end.setAttribute("aria-label", SETTINGS.revokeNamed(token.name));
      row(table, token.name, token.scopes.join(", "), date(token.created), endOf(token.expires), end);
    }
    return [make("h2", "", SETTINGS.tokens), make("p", "soft", SETTINGS.yourOwnToken), tokens.length ? wrap(table) : make("p", "", SETTINGS.noOtherTokens), this.newToken(), ...this.made.splice(0)];
  }

  private newToken(): HTMLElement {
    const form = make("form", "stack");
    const name = make("input");
    name.required = true;
    name.pattern = "[A-Za-z0-9_\\-]{1,64}";
    name.placeholder = "phone";
    const label = make("label", "", SETTINGS.name);
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
    lasts.append(new Option(SETTINGS.untilItIsRevoked, ""), new Option("1 day", "1"), new Option("7 days", "7"), new Option("30 days", "30"), new Option("90 days", "90"), new Option("1 year", "365"));
    lasts.value = "90";
    const lasting = make("label", "", SETTINGS.expiresText);
    lasting.append(lasts);
    const status = make("div");
    const button = make("button", "primary", SETTINGS.createToken);
    const foot = make("div", "answers");
    foot.append(button);
    form.append(make("h2", "", SETTINGS.newToken), label, lasting, ...boxes.map(([, line]) => line), foot, status);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const scopes = boxes.flatMap(([box]) => (box.checked ? [box.value] : []));
        const { token } = await ask("POST /tokens", {}, { body: { name: name.value, scopes, ...(lasts.value ? { days: Number(lasts.value) } : {}) } });
        const once = make("div", "token-once");
        once.append(make("b", "", SETTINGS.copyItNowIt), make("code", "", token), make("span", "soft", SETTINGS.loginLinkLoginTkn(window.location.origin)));
        once.setAttribute("aria-label", SETTINGS.theToken(name.value));
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
    const table = tableOf([SETTINGS.who, SETTINGS.sessions, SETTINGS.working, SETTINGS.needsAttention, SETTINGS.lastActive]);
    for (const [name, own] of [...all].sort(([one], [other]) => one.localeCompare(other))) {
      const link = make("a", "", name);
      link.href = `${root}/app?filter=${encodeURIComponent(`by:${name}`)}`;
      const count = (status: string) => String(own.filter((each) => each.status === status).length || "");
      const last = Math.max(0, ...own.map(({ modified }) => modified));
      row(table, link, String(own.length), count("running"), count("waiting"), last ? when(last, Date.now()) : "");
    }
    const people = make("div");
    await showPeople(people);
    return [people, make("h2", "", SETTINGS.sessionsOfPeople), make("p", "soft", SETTINGS.selectANameToList), wrap(table)];
  }

  // -- hosts --------------------------------------------------------------------------------------------------------

  private async hosts(): Promise<Node[]> {
    const about = await v1.about(this.signal);
    const found = await ask("GET /hosts", {}, { signal: this.signal });
    const working = [...this.context.board.rows.values()].filter(({ session }) => session.status === "running").length;
    const mine: Member = { id: 0, name: window.location.host, place: "", version: about.version, state: about.log.down ?? "up", sessions: this.context.board.rows.size, running: working, seen: Date.now() };
    const alone = found.hosts.length === 0;
    const hosts = alone ? [mine] : found.hosts;
    const table = tableOf([SETTINGS.host, SETTINGS.place, SETTINGS.labels, SETTINGS.state, SETTINGS.sessions, SETTINGS.working, SETTINGS.version, SETTINGS.seen]);
    for (const { name, place, labels = [], state, sessions = 0, running = 0, capacity, version = "", seen, here } of hosts) {
      row(table, here ? SETTINGS.answersHere(name) : name, place, labels.join(", "), state, String(sessions), capacity ? SETTINGS.of(running, capacity) : String(running), version, seen ? when(seen, Date.now()) : "");
    }
    return [make("h2", "", alone ? SETTINGS.oneHost : `${hosts.length} hosts`), wrap(table), ...(alone ? [make("p", "soft", SETTINGS.thisHostHasItsLog)] : [])];
  }

  // -- audit --------------------------------------------------------------------------------------------------------

  private async audit(): Promise<Node[]> {
    const all: { time: number; action: string; by: string; detail?: object }[] = [];
    for (let after: number | null | undefined = 0, pages = 0; typeof after === "number" && pages < 50; pages++) {
      const page: AuditPage = await ask("GET /audit", {}, { query: { after: String(after), limit: "1000" }, signal: this.signal });
      all.push(...(page.audit as unknown as typeof all));
      after = page.next;
    }
    const table = tableOf([SETTINGS.when, SETTINGS.what, SETTINGS.who, SETTINGS.about]);
    const lines = auditLines(all.reverse());
    for (const { time, action, by, detail, times } of lines.slice(0, MOST_AUDIT)) row(table, moment(time), times > 1 ? `${action} (${times} times)` : action, who(by), inWords(detail ?? {}));
    return [make("h2", "", SETTINGS.auditRecord), make("p", "soft", lines.length > MOST_AUDIT ? SETTINGS.theNewestLinesOfRecords(MOST_AUDIT, all.length) : SETTINGS.newest(all.length)), wrap(table)];
  }

  // -- the host -----------------------------------------------------------------------------------------------------

  private async host(): Promise<Node[]> {
    const [about, found] = await Promise.all([v1.about(this.signal), ask("GET /settings", {}, { signal: this.signal })]);
    return [make("h2", "", SETTINGS.versionNamed(window.location.host, about.version)), new HostSettings(found).element, this.stopServer()];
  }

  /** Separate, at the end, and confirmed by typing a name, so that no one stops a host by accident. */
  private stopServer(): HTMLElement {
    const zone = make("section", "danger-zone");
    const name = window.location.hostname;
    zone.append(
      make("h2", "", SETTINGS.stopTheHost),
      make("p", "", SETTINGS.runningTurnsAreInterrupted),
      makeButton("danger", SETTINGS.stopTheHostButton, () => {
        const box = dialog(SETTINGS.stopTheHostQuestion);
        box.addEventListener("close", () => box.remove());
        const form = make("form", "stack");
        const field = make("input");
        field.autocomplete = "off";
        const label = make("label", "", SETTINGS.typeToConfirm(name));
        label.append(field);
        const go = make("button", "danger", SETTINGS.stopTheHost);
        go.disabled = true;
        field.addEventListener("input", () => (go.disabled = field.value !== name));
        form.append(label, go);
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          if (field.value !== name) return;
          box.close();
          void api.stopServer().then(
            () => this.context.titled(SETTINGS.stopped, this),
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

