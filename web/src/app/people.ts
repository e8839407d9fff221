/** Who works here: oneself with tokens and quotas, and for admins everybody. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import type { Me, PersonShown, Quota } from "../rest";
import { ask } from "../v1";
import { confirm } from "./confirm";
import { ownerOf, type Row } from "./entries";
import { row, tableOf, wrap } from "./table";
import { PEOPLE } from "../texts/settings";

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
  const table = tableOf([PEOPLE.token, PEOPLE.permissions, PEOPLE.expires, PEOPLE.lastUsed, ""]);
  for (const token of me.tokens) {
    const end = makeButton("danger", PEOPLE.revoke, () => confirm(PEOPLE.revokeQuestion(token.name), PEOPLE.itsLoginsAndOpenConnections, PEOPLE.revokeText, () => void ask("DELETE /people/me/tokens/{name}", { name: token.name }).then(again)));
    end.setAttribute("aria-label", PEOPLE.revokeNamed(token.name));
    row(table, token.login ? "a browser" : token.name, token.scopes.join(", "), day(token.expires), day(token.used), end);
  }
  return [make("h2", "", me.person), make("p", "soft", PEOPLE.may(me.scopes, inWords(me.quotas))), wrap(table), newToken(me)];
}

function newToken(me: Me): HTMLElement {
  const form = make("form", "stack");
  const name = field(PEOPLE.name, "laptop");
  const days = field(PEOPLE.days, "90");
  const status = make("p", "soft");
  form.append(make("h2", "", PEOPLE.aTokenForAnEditor), name.line, days.line, make("button", "primary", PEOPLE.createToken), status);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lasts = Number(days.input.value);
    const body = { name: name.input.value, scopes: me.scopes.filter((scope) => scope !== "admin"), ...(lasts ? { days: lasts } : {}) };
    try {
      const { token } = await ask("POST /people/me/tokens", {}, { body });
      status.replaceChildren(PEOPLE.copyItNowIt, make("code", "", token));
    } catch (error) {
      status.textContent = explain(error);
    }
  });
  return form;
}

function everybody(people: PersonShown[], again: () => void): HTMLElement[] {
  const table = tableOf([PEOPLE.person, PEOPLE.permissions, PEOPLE.signs, PEOPLE.uses, ""]);
  for (const person of people) {
    const end = makeButton("danger", PEOPLE.remove, () => confirm(PEOPLE.removeQuestion(person.name), PEOPLE.theirTokensAndLoginsEnd, PEOPLE.removeText, () => void ask("DELETE /people/{name}", { name: person.name }).then(again)));
    end.setAttribute("aria-label", PEOPLE.removeTheirTokensAndLogins(person.name));
    row(table, person.name, person.scopes.join(", "), person.login || "–", inWords(person.quotas), end);
  }
  const form = make("form", "stack");
  const name = field(PEOPLE.name, "ann@example.org");
  const status = make("p", "bad");
  form.append(make("h2", "", PEOPLE.addAPerson), name.line, make("button", "primary", PEOPLE.add), status);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask("POST /people", {}, { body: { name: name.input.value } }).then(again, (error: unknown) => (status.textContent = explain(error)));
  });
  return [make("h2", "", PEOPLE.people), people.length ? wrap(table) : make("p", "", PEOPLE.onlyYouSoFarSessions), form];
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
    .map(({ name, used, bound }) => PEOPLE.quota(used, bound, name))
    .join(", ");
}

function day(milliseconds?: number): string {
  return milliseconds ? new Date(milliseconds).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" }) : "–";
}
