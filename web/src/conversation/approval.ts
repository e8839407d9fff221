/** An approval as a card: exactly what would run, and the answers to choose from. */

import { make, makeButton } from "../page";
import { v1 } from "../v1";
import { diffView } from "./diff";
import { type CardActs, box, exact, pretty, relative } from "./pieces";
import type { Approval, CallPart, Option } from "./state";
import { who } from "./words";

const VERBS: Record<string, string> = { read: "read", write: "change a file", shell: "run a command", other: "use a tool" };

export function approvalCard(approval: Approval, call: CallPart, acts: CardActs): HTMLElement {
  const card = make("section", "card approval");
  const title = make("h3", "", approval.result ? "May the result be used?" : `May the agent ${VERBS[approval.kind] ?? "do this"}?`);
  title.id = `title-${approval.id}`;
  card.setAttribute("aria-labelledby", title.id);
  card.setAttribute("role", "group");
  card.dataset["since"] = String(performance.now());
  card.append(title);
  const named = approval.title === call.tool ? call.title : approval.title;
  const about = approval.path ? relative(approval.path, acts.cwd()) : exact(named ?? "");
  if (about && !approval.command) card.append(make("p", "about", about));
  if (approval.command) card.append(box(`$ ${exact(approval.command)}`));
  if (approval.diff) card.append(diffView(exact(approval.diff)));
  else if (!approval.command) card.append(box(pretty(approval.input)));
  if (approval.diff || approval.command) card.append(whole(approval.input));
  const edit = approval.editable ? editor(approval.input) : undefined;
  if (edit) card.append(edit.view);
  const reason = make("input", "reason");
  reason.placeholder = "A word to the agent (optional)";
  reason.setAttribute("aria-label", reason.placeholder);
  const answer = async (option: Option) => {
    const changed = edit?.changed();
    const body = { option: option.id, ...(reason.value ? { reason: reason.value } : {}), ...(changed === undefined || !option.allow ? {} : { input: changed }) };
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    if (!(await acts.attempt(() => v1.approve(approval.id, body)))) for (const button of card.querySelectorAll("button")) button.disabled = false;
  };
  card.append(reason, buttons(approval.options, answer));
  if (approval.expires) {
    const until = new Date(approval.expires).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    card.append(make("p", "soft", `No answer by ${until} counts as no.`));
  }
  return card;
}

/** The first yes answers `y`, the first no answers `n`. */
function buttons(options: Option[], answer: (option: Option) => Promise<void>): HTMLElement {
  const row = make("div", "answers");
  const [yes, no] = [options.find(({ allow }) => allow), options.find(({ allow }) => !allow)];
  for (const option of options) {
    const button = makeButton(option === yes ? "primary" : option.allow ? "" : "danger", option.label, () => void answer(option));
    const key = option === yes ? "y" : option === no ? "n" : "";
    if (key) {
      button.dataset["answer"] = key;
      button.append(make("kbd", "", key));
    }
    row.append(button);
  }
  return row;
}

/** A change or a command line is what the agent says about the call; this is the call itself. */
function whole(input: string): HTMLElement {
  const view = make("details");
  view.append(make("summary", "soft", "The exact input"), box(pretty(input)));
  return view;
}

function editor(input: string): { view: HTMLElement; changed(): string | undefined } {
  const view = make("details");
  const area = make("textarea", "edit");
  area.value = input;
  area.rows = 6;
  area.setAttribute("aria-label", "Input");
  view.append(make("summary", "", "Change the input"), area);
  return { view, changed: () => (area.value === input ? undefined : area.value) };
}

/** What was answered, by whom. */
export function verdict(approval: Approval): HTMLElement {
  const option = approval.options.find(({ id }) => id === approval.option)?.label;
  const by = approval.by === "timeout" ? "nobody in time" : who(approval.by ?? "");
  const text = `${approval.allowed ? "Allowed" : "Refused"} by ${by}${option ? ` (${option})` : ""}${approval.reason ? `: ${approval.reason}` : "."}`;
  return make("p", approval.allowed ? "good" : "bad", text);
}
