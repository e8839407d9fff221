/** One session: its messages above, the input below. */

import { api, explain, type LiveElement, Refused, type TaskInfo } from "./api";
import { AskedView } from "./pendingCards";
import { Live } from "./live";
import { notificationButton, notify } from "./notifications";
import { OfferedDraft } from "./offeredDraft";
import { byId, confirmStop, endPage, hasKeys } from "./page";
import { SessionResponseRenderer } from "./sessionResponse";
import { split } from "./splitter";
import { sessionAddress } from "./v1";
import { SESSION_PAGE } from "./texts/portal";

const ENDED = SESSION_PAGE.sessionEndedYouMayClose;

function notifyAway(list: LiveElement[], sessionId: string): void {
  const last = list.findLast(({ callback }) => callback === "onPersonAsked" || callback === "onIdle");
  if (last) notify(SESSION_PAGE.portico, last.callback === "onIdle" ? SESSION_PAGE.theAgentIsDone : SESSION_PAGE.theAgentWaits, sessionId);
}

export class SessionView {
  private readonly textarea = byId("request-textarea", HTMLTextAreaElement);
  private readonly send = byId("send-button", HTMLButtonElement);
  private readonly taskSelect = byId("task-select", HTMLSelectElement);
  private readonly renderer = new SessionResponseRenderer(byId("session-part", HTMLDivElement));
  private readonly asked: AskedView;
  private readonly live: Live;
  private readonly draft: OfferedDraft;
  private tasks: TaskInfo[] = [];
  /** A task sends several prompts, and the session is idle between them; only its end gives Send back. */
  private task: Live | undefined;
  private busy = false;
  private closed = false;
  /** The first events are the history, or a replay: no notifications for them. */
  private replayed = false;
  /** What this page sent and has shown already; the host's echo of it is not shown again. */
  private echoes: string[] = [];

  constructor(
    private readonly sessionId: string,
    private readonly gone: () => void,
  ) {
    byId("session-ui").style.display = "flex";
    split({ bar: byId("resize-bar"), part: byId("request-part"), other: byId("session-part"), axis: "height", least: 100 });
    this.send.addEventListener("click", () => void this.submit());
    this.textarea.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "Enter") return;
      event.preventDefault();
      void this.submit();
    });
    byId("close-session-button").addEventListener("click", () => void this.close(false));
    byId("stop-server-button").addEventListener("click", () => void this.close(true));
    byId("whole-session", HTMLAnchorElement).href = sessionAddress(sessionId);
    this.asked = new AskedView(sessionId, byId("asked-part"), (text) => this.renderer.addNotice(text));
    this.draft = new OfferedDraft(sessionId, this.textarea, (text) => (this.textarea.value = text));
    notificationButton(byId("notify", HTMLButtonElement));
    this.live = new Live("session", sessionId, {
      elements: (list, again) => this.receive(list, again),
      ended: (error) => this.ended(error),
    });
    void this.loadTasks();
    if (!hasKeys()) this.textarea.placeholder = SESSION_PAGE.writeToTheAgent;
    this.textarea.focus();
  }

  private async loadTasks(): Promise<void> {
    try {
      this.tasks = (await api.tasks()).tasks ?? [];
      this.taskSelect.append(...this.tasks.map(({ name }) => new Option(name, name)));
    } catch (error) {
      // Refused: no entry is installed, so there is no task to choose. Talking works all the same.
      if (!(error instanceof Refused)) this.renderer.addNotice(SESSION_PAGE.theTasksCould(explain(error)));
    }
  }

  private receive(list: LiveElement[], again: boolean): void {
    if (this.replayed && !again) notifyAway(list, this.sessionId);
    this.replayed = true;
    if (again) {
      this.renderer.clear();
      this.echoes = [];
      this.busy = false;
      this.asked.clear();
    }
    this.renderer.together(() => list.forEach((element) => this.showOne(element)));
    this.asked.render();
    this.showState();
  }

  private showOne(element: LiveElement): void {
    if (element.callback === "onUserPrompt") {
      this.busy = true;
      this.showPrompt(String(element.prompt));
      return;
    }
    if (element.callback === "onDraft") this.draft.offer(String(element.text));
    this.asked.take(element);
    const callback = this.renderer.processCallback(element);
    if (callback === "onAgentStart" || callback === "onGeneratedUserPrompt") this.busy = true;
    if (callback === "onIdle" || element.sessionError !== undefined) this.busy = false;
  }

  /** Messages from any browser; our own are shown since they were sent. */
  private showPrompt(prompt: string): void {
    const own = this.echoes.indexOf(prompt);
    if (own >= 0) this.echoes.splice(own, 1);
    else this.renderer.addUserMessage(prompt);
  }

  private ended(error: string): void {
    this.closed = true;
    this.asked.clear();
    this.asked.render();
    this.showState();
    if (error === "SessionNotFound" && !byId("session-part").querySelector(".message-block")) this.gone();
    else this.renderer.addNotice(SESSION_PAGE.thisSessionIsClosed);
  }

  private showState(): void {
    const working = this.busy || this.task !== undefined;
    this.send.disabled = working || this.closed;
    this.renderer.setAwaiting(working && !this.closed);
  }

  private async submit(): Promise<void> {
    const text = this.textarea.value;
    const task = this.tasks.find(({ name }) => name === this.taskSelect.value);
    const enough = text.trim() !== "" || (task !== undefined && !task.requireUserInput);
    if (this.send.disabled || !enough) return;
    this.busy = true;
    this.textarea.value = "";
    if (!task) {
      this.echoes.push(text);
      this.renderer.addUserMessage(text);
    }
    this.showState();
    try {
      if (task) await this.startTask(task.name, text);
      else await this.query(text);
    } catch (error) {
      this.failed(error, text);
    }
  }

  private async query(text: string): Promise<void> {
    const { error } = await api.query(this.sessionId, text);
    if (error) throw new Error(error);
    this.draft.sent();
  }

  private async startTask(name: string, input: string): Promise<void> {
    const { taskId, taskError, error } = await api.startTask(name, this.sessionId, input);
    if (!taskId) throw new Error(taskError ?? error ?? SESSION_PAGE.theHostGaveNoTask);
    let reason = "";
    const end = () => {
      this.task = undefined;
      this.busy = false;
      this.showState();
    };
    this.task = new Live("task", taskId, {
      elements: (list) => {
        for (const element of list) {
          if (element.callback === "taskDecision") reason = String(element.reason);
          if (element.callback === "taskFailed") this.renderer.addNotice(SESSION_PAGE.theTaskFailed(name, reason));
        }
        if (list.some(({ callback }) => callback === "taskSucceeded" || callback === "taskFailed")) end();
      },
      ended: end,
    });
  }

  /** Nothing was sent: the words go back where they came from, and Send is there again. */
  private failed(error: unknown, text: string): void {
    this.busy = false;
    this.echoes = this.echoes.filter((each) => each !== text);
    if (!this.textarea.value) this.textarea.value = text;
    this.renderer.addNotice(SESSION_PAGE.notSent(explain(error)));
    this.showState();
  }

  private async close(server: boolean): Promise<void> {
    if (server && !confirmStop()) return;
    this.live.stop();
    this.task?.stop();
    window.history.replaceState(null, "", window.location.pathname);
    try {
      await api.stop("session", this.sessionId);
      if (server) await api.stopServer();
    } catch (error) {
      // The host is gone already, which is what was wanted; anything else is worth a word.
      if (!(error instanceof TypeError)) window.alert(explain(error));
    }
    endPage(ENDED);
  }
}
