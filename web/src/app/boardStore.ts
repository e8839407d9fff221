/** The live list: everything once, then what changes, over one WebSocket; and the jobs beside it. */

import { reportConnection } from "../connection";
import { isTemporary, Refused } from "../failure";
import { Backoff, page as pageScope } from "../scope";
import { ask, boardSocketAddress, v1 } from "../v1";
import { type Entry, entryOfJob, entryOfSession, type JobRow, needsResume, ofTask, type Row } from "./entries";
import { ReadJobs } from "./readJobs";
import { type Day, dayOf, startOfDay } from "../time";

interface Page {
  version: number;
  rows: Row[];
  older?: number;
  /** Where the older ones begin; 0: there are none. */
  before?: number;
  /** How many rows they will be: today, yesterday, before. */
  days?: number[];
  archived?: number;
  removed?: string[];
  jobs?: string[];
}

const CACHE = "portico.board";
/** The jobs and the names of agents, for a start without the host. */
const CACHE_MORE = "portico.board.more";
/** Shown on a cold start until the host has answered. */
const CACHED_ROWS = 60;
/** Older ones come so many at a time. */
const PAGE = 100;
/** A page of the board. What the host passes on unread has its shape in `Row`. */
const board = (query: Record<string, string>): Promise<Page> => ask("GET /board", {}, { query: { ...query, limit: String(PAGE) } }) as Promise<Page>;
const NONE_LEFT: Readonly<Record<Day, number>> = { today: 0, yesterday: 0, older: 0 };

/** Has its own row. Helpers and the sessions of a job are part of the row that started them. */
const isOwn = (row: Row) => !ofTask(row) && row.session.origin?.kind !== "agent";

/** Where today and yesterday begin, for the host to count by. */
function days(): string {
  const today = startOfDay(Date.now());
  return `${today},${startOfDay(today - 1)}`;
}

/** The job was erased, or is not for this user; anything else is an error. */
function absent(error: unknown): undefined {
  if (!(error instanceof Refused) || isTemporary(error)) throw error;
  return undefined;
}

/** The label of an agent that acts without asking: shown wherever its name is. */
const NEVER_ASKS = "does not ask";

export class BoardStore {
  readonly rows = new Map<string, Row>();
  readonly jobs = new Map<string, JobRow>();
  /** Rows that the host has and that are not here, as it counted them. */
  left: Record<Day, number> = { ...NONE_LEFT };
  /** Where they begin. */
  private before = 0;
  /** The host has answered at least once. */
  live = false;
  /** Since when the host is out of reach. */
  downSince: number | undefined;
  /** When it is tried again. */
  retryAt = 0;
  readonly readJobs = new ReadJobs();
  private readonly backoff = new Backoff();
  private readonly listeners = new Set<() => void>();
  private scheduled = false;

  start(): void {
    this.remember();
    this.connect();
    this.loadJobs();
    this.loadNames();
  }

  /** Called once per frame in which something has changed. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  entries(archived = false): Entry[] {
    const rows = [...this.rows.values()];
    const tasks = rows.filter(ofTask);
    const sessions = rows.filter((row) => isOwn(row) && (row.session.archived === true) === archived);
    if (archived) return sessions.map((row) => this.entryOf(row));
    const asking = new Map(rows.filter(({ session, waiting }) => session.origin?.kind === "agent" && waiting?.length).map((row) => [row.session.parent ?? "", row]));
    return [...sessions.map((row) => this.entryOf(row, asking.get(row.session.id))), ...[...this.jobs.values()].map((job) => ({ ...entryOfJob(job, tasks, this.titleOf), unread: this.readJobs.isUnread(job) }))];
  }

  private readonly made = new WeakMap<Row, Entry>();

  /** Cached for each row of the host: there may be thousands, and few of them change. A queued row names another one. */
  private entryOf(row: Row, helper?: Row): Entry {
    if (helper || row.queued) return entryOfSession(row, helper, this.titleOf);
    const entry = this.made.get(row) ?? entryOfSession(row);
    this.made.set(row, entry);
    return entry;
  }

  readonly titleOf = (id: string): string | undefined => this.rows.get(id)?.session.title;

  /** How many things wait for a person, everywhere. */
  get needed(): number {
    let count = 0;
    const now = Date.now();
    for (const row of this.rows.values()) count += (row.waiting?.length ?? 0) + (needsResume(row, now) ? 1 : 0);
    for (const { status } of this.jobs.values()) count += status === "waiting" ? 1 : 0;
    return count;
  }

  /** The sessions of a task, newest first. */
  ofTask(task: string): Row[] {
    return [...this.rows.values()].filter(({ session }) => session.by === `task:${task}`).sort((one, other) => other.session.created - one.session.created);
  }

  private loading: Promise<void> | undefined;

  /** Loads the next page. Concurrent calls share one request. */
  loadOlder(): Promise<void> {
    this.loading ??= this.loadPage().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async loadPage(): Promise<void> {
    try {
      const page = this.before ? await board({ before: String(this.before), days: days() }) : { rows: [], version: 0 };
      for (const row of page.rows) if (!this.rows.has(row.session.id)) this.rows.set(row.session.id, row);
      this.count(page);
      for (const row of this.rows.values()) if (row.session.modified < this.before) this.known(row);
      this.notify();
    } catch {
      // Out of reach: the list shows it, and further scrolling retries.
    }
  }

  /** Those that are called so, wherever they are: the list has only the newest. */
  async loadCalled(words: string): Promise<void> {
    if (!this.before) return;
    try {
      const { rows } = await board({ q: words });
      for (const row of rows) this.addRow(row);
      this.notify();
    } catch {
      // Out of reach: the list shows it.
    }
  }

  private count({ before = 0, days: [today = 0, yesterday = 0, older = 0] = [] }: Page): void {
    this.before = before;
    this.left = { today, yesterday, older };
  }

  /** One that was left out is here now. */
  private known(row: Row): void {
    const day = dayOf(row.session.modified, Date.now());
    const from = [day, "older", "yesterday", "today"].find((each) => this.left[each as Day] > 0) as Day | undefined;
    if (from && isOwn(row) && !row.session.archived) this.left[from]--;
  }

  /** A row of which nothing was known: if it is older than what was loaded, it had been counted among those left. */
  private addRow(row: Row): void {
    if (!this.rows.has(row.session.id) && row.session.created < this.before) this.known(row);
    this.rows.set(row.session.id, row);
  }

  private inArchive = 0;

  /** How many sessions are in the archive, as far as is known. */
  get archived(): number {
    let known = 0;
    for (const { session } of this.rows.values()) known += session.archived ? 1 : 0;
    return Math.max(known, this.inArchive);
  }

  private archiveAsked = false;

  /** Those in the archive; asked for once, and from then on as live as the others. */
  async loadArchive(): Promise<void> {
    if (this.archiveAsked) return;
    this.archiveAsked = true;
    try {
      let next = 0;
      do {
        const page = await board({ archived: "true", ...(next ? { before: String(next) } : {}) });
        for (const row of page.rows) if (!this.rows.has(row.session.id)) this.rows.set(row.session.id, row);
        next = page.before ?? 0;
        this.notify();
      } while (next);
    } catch {
      this.archiveAsked = false; // out of reach: the next look asks again
    }
  }

  private again: ReturnType<typeof setTimeout> | undefined;

  /** Another connection has reached the host. */
  retryNow(): void {
    if (this.again === undefined) return;
    clearTimeout(this.again);
    this.connect();
  }

  /** A short interruption is not shown. */
  get lost(): boolean {
    return this.downSince !== undefined && Date.now() - this.downSince > 1500;
  }

  /** The time that clocks show: without the host nothing is known of what happens since. It never goes back. */
  get now(): number {
    return this.downSince ?? Date.now();
  }

  private connect(): void {
    this.again = undefined;
    const socket = new WebSocket(boardSocketAddress(days()));
    let whole = true;
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const page = JSON.parse(data) as Page;
      if (whole) this.begin(page);
      else this.take(page);
      whole = false;
    };
    socket.onclose = () => {
      if (whole) void this.checkLogin();
      this.downSince ??= Date.now();
      this.notify();
      const wait = this.backoff.next();
      this.retryAt = Date.now() + wait;
      this.again = setTimeout(() => this.connect(), wait);
    };
  }

  /** A socket does not report why it was refused. A request does, and leads to the login. */
  private async checkLogin(): Promise<void> {
    try {
      await v1.about();
    } catch {
      // Out of reach: the list shows it.
    }
  }

  private begin(page: Page): void {
    this.rows.clear();
    this.count(page);
    this.inArchive = page.archived ?? 0;
    this.archiveAsked = false;
    if (this.downSince !== undefined) this.loadJobs();
    if (!this.live || this.agentNames.size === 0) this.loadNames();
    this.live = true;
    this.downSince = undefined;
    this.backoff.reset();
    reportConnection(this, true);
    for (const row of page.rows) this.rows.set(row.session.id, row);
    this.take({ ...page, rows: [] });
  }

  private take(page: Page): void {
    for (const row of page.rows) this.addRow(row);
    for (const id of page.removed ?? []) this.rows.delete(id);
    for (const id of page.jobs ?? []) this.loadJob(id);
    this.notify();
  }

  private readonly agentNames = new Map<string, string>();

  /** Its name, with a mark if it does not ask; its id, until that is known. */
  agentName(id: string): string {
    return this.agentNames.get(id) ?? id;
  }

  private readonly loadNames = pageScope.latest(
    () => v1.agents(),
    (agents) => {
      for (const { id, name, label } of agents) this.agentNames.set(id, label === NEVER_ASKS ? `${name} (${label})` : name);
      this.notify();
    },
    { failed: () => undefined }, // not for this reader: ids are names, too
  );

  /** Numbers the requests for jobs: the list never replaces a job by an older answer. */
  private asked = 0;
  private readonly jobAsked = new Map<string, number>();

  private readonly loadJobs = pageScope.latest(
    async (signal) => ({ number: ++this.asked, jobs: (await ask("GET /jobs", {}, { signal })).jobs }),
    ({ number, jobs }) => {
      const isNewer = (id: string) => (this.jobAsked.get(id) ?? 0) > number;
      for (const id of this.jobs.keys()) if (!isNewer(id)) this.jobs.delete(id);
      for (const job of jobs) if (!isNewer(job.id)) this.jobs.set(job.id, job);
      this.notify();
    },
    { failed: () => undefined }, // the list shows that the host is out of reach
  );

  private readonly loaders = new Map<string, () => void>();

  /** One request at a time for each job, retried until it is answered: otherwise a finished job could stay "running". */
  private loadJob(id: string): void {
    const found = this.loaders.get(id) ?? this.loaderOf(id);
    this.loaders.set(id, found);
    found();
  }

  private loaderOf(id: string): () => void {
    return pageScope.latest(
      async (signal) => {
        const number = ++this.asked;
        return { number, job: await v1.job(id, signal).catch(absent) };
      },
      ({ number, job }) => {
        this.jobAsked.set(id, number);
        if (job) this.jobs.set(id, job);
        else this.jobs.delete(id);
        this.notify();
      },
      { failed: () => undefined }, // the list shows that the host is out of reach
    );
  }

  private notify(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const run = () => {
      this.scheduled = false;
      for (const listener of [...this.listeners]) listener();
      if (this.live) this.keep();
    };
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  }

  private kept = 0;
  private keepsLater = false;

  /** Stores the list for the next start, at most every five seconds, and the last state of a series of changes too. */
  private keep(): void {
    const wait = this.kept + 5_000 - Date.now();
    if (wait > 0) {
      if (!this.keepsLater) setTimeout(() => this.store(), wait);
      this.keepsLater = true;
    } else this.store();
  }

  private store(): void {
    this.keepsLater = false;
    this.kept = Date.now();
    const rows = [...this.rows.values()].sort((one, other) => other.session.modified - one.session.modified).slice(0, CACHED_ROWS);
    try {
      localStorage.setItem(CACHE, JSON.stringify(rows));
      localStorage.setItem(CACHE_MORE, JSON.stringify({ jobs: [...this.jobs.values()].slice(0, CACHED_ROWS), names: [...this.agentNames] }));
    } catch {
      // No room or not allowed: the next start shows an empty list for a moment longer.
    }
  }

  private remember(): void {
    try {
      for (const row of JSON.parse(localStorage.getItem(CACHE) ?? "[]") as Row[]) this.rows.set(row.session.id, row);
      const { jobs = [], names = [] } = JSON.parse(localStorage.getItem(CACHE_MORE) ?? "{}") as { jobs?: JobRow[]; names?: [string, string][] };
      for (const job of jobs) this.jobs.set(job.id, job);
      for (const [id, name] of names) this.agentNames.set(id, name);
      if (this.rows.size > 0) this.notify();
    } catch {
      localStorage.removeItem(CACHE);
      localStorage.removeItem(CACHE_MORE);
    }
  }
}
