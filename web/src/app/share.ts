/** Whom a session is shown to besides its owner, and what they may do in it. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import type { ShareSessionBody } from "../rest";
import { ask } from "../v1";
import { SHARE } from "../texts/menus";

export type Shares = Record<string, string[]>;

const RIGHTS: [value: string, text: string][] = [
  ["read", "may read"],
  ["drive", SHARE.mayReadAndWrite],
  ["approve", SHARE.mayReadAndAnswer],
  ["drive,approve", SHARE.mayDoEverythingButShare],
];

/** `*` is everybody; reading comes with each right. */
export function shareWords(person: string, rights: string[]): string {
  const more = RIGHTS.map(([value]) => value).findLast((value) => value.split(",").every((right) => rights.includes(right)));
  return `${person === "*" ? SHARE.everybody : person} ${RIGHTS.find(([value]) => value === more)?.[1] ?? "may read"}`;
}

export function openShare(id: string, title: string, given: Shares): void {
  const box = dialog(SHARE.share(title));
  const list = make("ul", "shares");
  const status = make("p", "trouble");
  status.setAttribute("role", "alert");
  const form = make("form", "stack");
  const person = make("input");
  person.required = true;
  person.placeholder = SHARE.nameOrForEverybody;
  person.setAttribute("aria-label", SHARE.person);
  const right = make("select");
  right.setAttribute("aria-label", SHARE.whatTheyMayDo);
  right.append(...RIGHTS.map(([value, text]) => new Option(text, value)));
  const submit = async (path: "share" | "unshare", body: ShareSessionBody) => {
    status.textContent = "";
    try {
      render((await ask(`POST /sessions/{id}/${path}`, { id }, { body })).shares ?? {});
      person.value = "";
    } catch (error) {
      status.textContent = explain(error);
    }
  };
  const render = (shares: Shares) => {
    const rows = Object.entries(shares).map(([name, rights]) => {
      const row = make("li", "share");
      const end = makeButton("btn small", SHARE.takeBack, () => void submit("unshare", { person: name }));
      end.setAttribute("aria-label", SHARE.takeBackFrom(name));
      row.append(make("span", "", shareWords(name, rights)), " ", end);
      return row;
    });
    list.replaceChildren(...(rows.length ? rows : [make("li", "soft", SHARE.onlyYouAndTheAdmins)]));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submit("share", { person: person.value.trim(), rights: right.value.split(",") as NonNullable<ShareSessionBody["rights"]> });
  });
  form.append(person, right, make("button", "primary", SHARE.shareText));
  render(given);
  box.append(list, form, status);
  box.addEventListener("close", () => box.remove());
  box.showModal();
}
