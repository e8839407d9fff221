/** What was answered once and for all: which calls of this session are allowed or refused without asking again. */

import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";
import { type Grant, v1 } from "../v1";
import { exact } from "./pieces";
import type { SessionState } from "./state";

type Attempt = (work: () => Promise<unknown>) => Promise<boolean>;

/** Those that can meet a call of this session. */
export function grantsOf(state: SessionState, grants: Grant[]): Grant[] {
  const inside = (folder: string) => state.cwd === folder || state.cwd.startsWith(`${folder}/`);
  return grants.filter(({ agent, session, project }) => agent === state.agent && (session === state.id || (project !== undefined && project !== null && inside(project))));
}

export async function showGrants(state: SessionState, attempt: Attempt): Promise<void> {
  const box = dialog("Remembered answers");
  box.addEventListener("close", () => box.remove());
  const list = make("ul", "grants");
  const load = async () => {
    const found = grantsOf(state, await v1.grants());
    list.replaceChildren(...found.map((grant) => item(grant, () => void attempt(() => v1.revoke(grant.id)).then((done) => (done ? load() : undefined)))));
    if (found.length === 0) list.replaceChildren(make("li", "soft", "None. “Allow in this session” on an approval remembers the answer here, until you forget it or it expires."));
  };
  box.append(list);
  await load();
  box.showModal();
}

function item(grant: Grant, forget: () => void): HTMLElement {
  const row = make("li");
  const text = make("span", "", `${grant.allow ? "Allowed" : "Refused"}: ${grant.tool}`);
  if (grant.pattern && grant.pattern !== "*") text.append(" ", make("code", "", exact(grant.pattern)));
  const until = new Date(grant.expires).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const about = make("span", "soft", `${grant.session ? "this session" : "this project"}, until ${until}`);
  row.append(text, about, makeButton("quiet", "Forget", forget));
  return row;
}
