/** What can be done with a row of the list without opening it, behind its "more". */

import { explain } from "../api";
import { make } from "../page";
import { askFirst, dialog } from "../shortcuts";
import { SELECTION } from "../texts/selection";
import { v1 } from "../v1";
import { type Entry, moves } from "./entries";
import { openMenu } from "./floatingMenu";
import type { Choice } from "./menu";
import { pathOf, type Place } from "./router";
import { askDelete, askTitle } from "./sessionDialogs";

export function openRowMenu(entry: Entry, beside: HTMLElement, closed: () => void, select?: (entry: Entry) => void): void {
  const choices = entry.kind === "job" ? ofJob(entry) : ofSession(entry);
  if (select) choices.splice(-1, 0, { text: SELECTION.select, run: () => select(entry) }); // what cannot be undone stays last
  openMenu(beside, `More of ${entry.title}`, choices, closed);
}

/** The router is notified, as by the buttons of the browser. */
function goTo(place: Place): void {
  window.history.pushState(null, "", pathOf(place));
  window.dispatchEvent(new PopStateEvent("popstate"));
}

const placeOf = ({ kind, id }: Entry): Place => ({ at: kind, id });
const copyLink = (entry: Entry): Choice => ({ text: "Copy the link", run: () => void attempt(() => navigator.clipboard.writeText(window.location.origin + pathOf(placeOf(entry)))) });

function ofSession(entry: Entry): Choice[] {
  const { id, state, title, unread, archived, shares } = entry;
  const change = (body: Parameters<typeof v1.change>[1]) => void attempt(() => v1.change(id, body));
  const remove = async () => {
    await v1.remove(id);
    if (window.location.pathname.startsWith(pathOf(placeOf(entry)))) goTo({ at: "home" });
  };
  const quiet: Choice[] = [
    { text: unread ? "Mark as read" : "Mark as unread", run: () => change({ read: unread }) },
    { text: archived ? "Take out of the archive" : "Archive", run: () => change({ archived: !archived }) },
  ];
  return [
    ...(state === "interrupted" || state === "failed" ? [{ text: "Resume", run: () => void attempt(() => v1.resume(id)) }] : []),
    { text: "Rename", run: () => askTitle(title, (given) => change({ title: given })) },
    ...(moves(entry) ? [] : quiet),
    { text: "Continue in a copy", run: () => void attempt(async () => goTo({ at: "session", id: (await v1.fork(id)).id })) },
    copyLink(entry),
    ...(shares ? [{ text: "Share…", run: () => void import("./share").then((module) => module.openShare(id, title, shares)) }] : []),
    { text: "Delete…", danger: true, run: () => askDelete(`“${title}”`, () => attempt(remove)) },
  ];
}

function ofJob(entry: Entry): Choice[] {
  const { id, state } = entry;
  const follow = (work: (id: string) => Promise<{ job: string }>) => void attempt(async () => goTo({ at: "job", id: (await work(id)).job }));
  return [
    ...(state === "failed" || state === "stopped" ? [{ text: "Resume", run: () => follow(v1.resumeJob) }] : []),
    ...(moves(entry) ? [] : [{ text: "Run again", run: () => follow(v1.retryJob) }]),
    copyLink(entry),
    ...(moves(entry) ? [{ text: "Stop…", danger: true, run: () => askStop(id, attempt) }] : []),
  ];
}

export function askStop(id: string, attempt: (work: () => Promise<unknown>) => Promise<unknown>): void {
  askFirst("Stop this job?", "What runs in it is stopped. What has succeeded stays, and the job can be resumed later.", "Stop the job", () => attempt(() => v1.stopJob(id)));
}

/** A row has no room for an error, so it is shown above the list. */
async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const box = dialog("That did not work");
    box.append(make("p", "", explain(error)));
    box.addEventListener("close", () => box.remove());
    box.showModal();
  }
}
