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
import { ROW_MENU } from "../texts/menus";

export function openRowMenu(entry: Entry, beside: HTMLElement, closed: () => void, select?: (entry: Entry) => void): void {
  const choices = entry.kind === "job" ? ofJob(entry) : ofSession(entry);
  if (select) choices.splice(-1, 0, { text: SELECTION.select, run: () => select(entry) }); // what cannot be undone stays last
  openMenu(beside, ROW_MENU.more(entry.title), choices, closed);
}

/** The router is notified, as by the buttons of the browser. */
function goTo(place: Place): void {
  window.history.pushState(null, "", pathOf(place));
  window.dispatchEvent(new PopStateEvent("popstate"));
}

const placeOf = ({ kind, id }: Entry): Place => ({ at: kind, id });
const copyLink = (entry: Entry): Choice => ({ text: ROW_MENU.copyTheLink, run: () => void attempt(() => navigator.clipboard.writeText(window.location.origin + pathOf(placeOf(entry)))) });

function ofSession(entry: Entry): Choice[] {
  const { id, state, title, unread, archived, shares } = entry;
  const change = (body: Parameters<typeof v1.change>[1]) => void attempt(() => v1.change(id, body));
  const remove = async () => {
    await v1.remove(id);
    if (window.location.pathname.startsWith(pathOf(placeOf(entry)))) goTo({ at: "home" });
  };
  const quiet: Choice[] = [
    { text: unread ? ROW_MENU.markAsRead : ROW_MENU.markAsUnread, run: () => change({ read: unread }) },
    { text: archived ? ROW_MENU.takeOutOfTheArchive : ROW_MENU.archive, run: () => change({ archived: !archived }) },
  ];
  return [
    ...(state === "interrupted" || state === "failed" ? [{ text: ROW_MENU.resume, run: () => void attempt(() => v1.resume(id)) }] : []),
    { text: ROW_MENU.rename, run: () => askTitle(title, (given) => change({ title: given })) },
    ...(moves(entry) ? [] : quiet),
    { text: ROW_MENU.continueInACopy, run: () => void attempt(async () => goTo({ at: "session", id: (await v1.fork(id)).id })) },
    copyLink(entry),
    ...(shares ? [{ text: ROW_MENU.share, run: () => void import("./share").then((module) => module.openShare(id, title, shares)) }] : []),
    { text: ROW_MENU.deleteIt, danger: true, run: () => askDelete(`“${title}”`, () => attempt(remove)) },
  ];
}

function ofJob(entry: Entry): Choice[] {
  const { id, state } = entry;
  const follow = (work: (id: string) => Promise<{ job: string }>) => void attempt(async () => goTo({ at: "job", id: (await work(id)).job }));
  return [
    ...(state === "failed" || state === "stopped" ? [{ text: ROW_MENU.resume, run: () => follow(v1.resumeJob) }] : []),
    ...(moves(entry) ? [] : [{ text: ROW_MENU.runAgain, run: () => follow(v1.retryJob) }]),
    copyLink(entry),
    ...(moves(entry) ? [{ text: ROW_MENU.stop, danger: true, run: () => askStop(id, attempt) }] : []),
  ];
}

export function askStop(id: string, attempt: (work: () => Promise<unknown>) => Promise<unknown>): void {
  askFirst(ROW_MENU.stopThisJob, ROW_MENU.whatRunsInIt, ROW_MENU.stopTheJob, () => attempt(() => v1.stopJob(id)));
}

/** A row has no room for an error, so it is shown above the list. */
async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const box = dialog(ROW_MENU.thatDidNotWork);
    box.append(make("p", "", explain(error)));
    box.addEventListener("close", () => box.remove());
    box.showModal();
  }
}
