/** Follows one work of a job: its task, and every session the task opens. */

import { explain, type LiveElement } from "./api";
import { Lanes, Live } from "./live";
import { pause } from "./page";
import { type Tab, Tabs } from "./tabs";

/** How long a stopped session may take to send its last messages before the page continues without them. */
const LAST_WORDS_MS = 3_000;

const placeOf = ({ seq }: LiveElement): number | undefined => (typeof seq === "number" ? seq : undefined);

export class WorkView {
  readonly tabs: Tabs;
  private taskId: string | undefined;
  private task: Live | undefined;
  private readonly sessions = new Map<string, Live>();
  private driving: Tab | undefined;
  private attempts = 0;
  private queue: Promise<void> = Promise.resolve();
  /** Counts the tellings of the story: what belongs to an earlier one is dropped. */
  private generation = 0;

  constructor(
    private readonly lanes: Lanes,
    private readonly onScreen: () => boolean,
    back: () => void,
  ) {
    this.tabs = new Tabs(back);
  }

  /** The work starts (again): messages of an earlier round are discarded. */
  follow(taskId: string): void {
    if (taskId === this.taskId) return;
    this.taskId = taskId;
    this.discard();
    this.begin();
  }

  stop(): void {
    this.task?.stop();
    for (const live of this.sessions.values()) live.stop();
    this.sessions.clear();
  }

  private discard(): void {
    this.generation++;
    this.stop();
    this.driving = undefined;
    this.attempts = 0;
    this.queue = Promise.resolve();
    this.tabs.clear();
  }

  private begin(replaying = false): void {
    if (this.taskId === undefined) return;
    const follower = {
      elements: (list: LiveElement[], again: boolean) => {
        if (again || replaying) this.discardKeepingTask();
        replaying = false;
        const telling = this.generation;
        for (const element of list) this.queue = this.queue.then(() => (telling === this.generation ? this.apply(element) : undefined));
      },
    };
    this.task = new Live("task", this.taskId, follower, this.lanes, this.onScreen);
  }

  private discardKeepingTask(): void {
    const task = this.task;
    this.task = undefined;
    this.discard();
    this.task = task;
  }

  /** Decisions are shown where they were made (`seq`), independent of which stream arrives first. */
  private async apply(element: LiveElement): Promise<void> {
    switch (element.callback) {
      case "taskSessionStarted":
        this.followSession(String(element.sessionId), element.isDriving === true);
        break;
      case "taskSessionStopped":
        await this.lastWords(String(element.sessionId));
        break;
      case "taskDecision":
        this.drivingTab().renderer.addUserMessage(String(element.reason), "TaskDecision", placeOf(element));
        break;
      default:
        if (element.taskError !== undefined) this.drivingTab().renderer.addNotice(explain(element.taskError));
    }
  }

  /** The next session of the tab has the same ids: this one has to be done with them. */
  private async lastWords(session: string): Promise<void> {
    await Promise.race([this.sessions.get(session)?.over, pause(LAST_WORDS_MS)]);
  }

  /** Decisions may come before the first driving session; they get the tab ready for it. */
  private drivingTab(): Tab {
    this.driving ??= this.tabs.add("Driving", true);
    return this.driving;
  }

  private followSession(sessionId: string, isDriving: boolean): void {
    const tab = isDriving ? this.drivingTab() : this.tabs.add(`Attempt #${++this.attempts}`);
    if (isDriving) tab.renderer.forgetIds();
    const live = new Live(
      "session",
      sessionId,
      {
        elements: (list) => tab.renderer.together(() => list.forEach((element) => tab.renderer.processCallback(element))),
        lost: () => this.again(),
      },
      this.lanes,
      this.onScreen,
    );
    this.sessions.set(sessionId, live);
  }

  /** Tabs are shared between sessions and decisions, so after a broken connection everything is replayed. */
  private again(): void {
    this.stop();
    this.begin(true);
  }
}
