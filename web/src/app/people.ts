/** Who works here: oneself with tokens and quotas, and for admins everybody. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import type { Me, PersonShown, Quota } from "../rest";
import { ask } from "../v1";
import { confirm } from "./confirm";
import { ownerOf, type Row } from "./entries";
import { row, tableOf, wrap } from "./table";

export async function showPeople(body: HTMLElement): Promise<void> {
  const me = await ask("GET /people/me");
  const again = () => void showPeople(body).catch((error: unknown) => body.prepend(make("p", "trouble", explain(error))));
  const people = me.admin ? (await ask("GET /people")).people : [];
  body.replaceChildren(...(me.person ? own(me, again) : []), ...(me.admin ? everybody(people, again) : []));
}

/** Whose a session is; empty for one that belongs to no one and was started by a job or an automation. */
export function whose(session: Row["session"]): string {
  return session.owner || !/^(task|job|run|automation):/.test(session.by ?? "") ? ownerOf(session) : "";
}

function own(me: Me, again: () => void): HTMLElement[] {
  const table = tableOf(["Token", "Permissions", "Expires", "Last used", ""]);
  for (const token of me.tokens) {
    const end = makeButton("danger", "Revoke…", () => confirm(`Revoke ${token.name}?`, "Its logins and open connections end within a second. This cannot be undone.", "Revoke", () => void ask("DELETE /people/me/tokens/{name}", { name: token.name }).then(again)));
    end.setAttribute("aria-label", `Revoke ${token.name}`);
    row(table, token.login ? "a browser" : token.name, token.scopes.join(", "), day(token.expires), day(token.used), end);
  }
  return [make("h2", "", me.person), make("p", "soft", `You may: ${me.scopes.join(", ")}. ${inWords(me.quotas)}`), wrap(table), newToken(me)];
}

function newToken(me: Me): HTMLElement {
  const form = make("form", "stack");
  const name = field("Name", "laptop");
  const days = field("Days", "90");
  const status = make("p", "soft");
  form.append(make("h2", "", "A token for an editor or a script"), name.line, days.line, make("button", "primary", "Create token"), status);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lasts = Number(days.input.value);
    const body = { name: name.input.value, scopes: me.scopes.filter((scope) => scope !== "admin"), ...(lasts ? { days: lasts } : {}) };
    try {
      const { token } = await ask("POST /people/me/tokens", {}, { body });
      status.replaceChildren("Copy it now, it is shown this once: ", make("code", "", token));
    } catch (error) {
      status.textContent = explain(error);
    }
  });
  return form;
}

function everybody(people: PersonShown[], again: () => void): HTMLElement[] {
  const table = tableOf(["Person", "Permissions", "Signs in with", "Uses", ""]);
  for (const person of people) {
    const end = makeButton("danger", "Remove…", () => confirm(`Remove ${person.name}?`, "Their tokens and logins end, their sessions stay.", "Remove", () => void ask("DELETE /people/{name}", { name: person.name }).then(again)));
    end.setAttribute("aria-label", `Remove ${person.name}: their tokens and logins end, their sessions stay`);
    row(table, person.name, person.scopes.join(", "), person.login || "–", inWords(person.quotas), end);
  }
  const form = make("form", "stack");
  const name = field("Name", "ann@example.org");
  const status = make("p", "bad");
  form.append(make("h2", "", "Add a person"), name.line, make("button", "primary", "Add"), status);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask("POST /people", {}, { body: { name: name.input.value } }).then(again, (error: unknown) => (status.textContent = explain(error)));
  });
  return [make("h2", "", "People"), people.length ? wrap(table) : make("p", "", "Only you so far; sessions have no owner."), form];
}

function field(text: string, example: string): { line: HTMLElement; input: HTMLInputElement } {
  const input = make("input");
  input.required = true;
  input.placeholder = example;
  const line = make("label", "", text);
  line.append(input);
  return { line, input };
}

/** Only what is bounded. */
function inWords(quotas: Quota[]): string {
  return quotas
    .filter(({ bound }) => bound)
    .map(({ name, used, bound }) => `${used} of ${bound} ${name === "disk_mb" ? "MB" : name}`)
    .join(", ");
}

function day(milliseconds?: number): string {
  return milliseconds ? new Date(milliseconds).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" }) : "–";
}
