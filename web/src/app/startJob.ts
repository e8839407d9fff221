/** Start a job: one of the host's entry, or of an entry written here. */

import { explain } from "../api";
import { make, makeButton } from "../page";
import { Scope } from "../scope";
import { type About, call, v1 } from "../v1";
import { type Checked, EntryEditor } from "./entryEditor";
import { icon } from "../icons";
import { offerWhere, type Where } from "./where";
import type { View, ViewContext } from "./view";

interface Current {
  name: string;
  entry: { jobs: Record<string, { requireUserInput?: boolean }> };
}

interface Kept {
  text: string;
  job?: string;
  cwd?: string;
  input?: string;
}

export class StartJob implements View {
  readonly element = make("section", "place");
  readonly title = "Start a job";
  private readonly form = make("form", "start wide");
  private readonly jobs = make("select");
  private readonly folder = make("input");
  private readonly input = make("textarea");
  private readonly own = make("input");
  private readonly place = make("div");
  private readonly button = make("button", "primary", "Start");
  private readonly trouble = make("p", "trouble");
  private readonly from = make("p", "soft");
  private readonly editor = new EntryEditor((checked) => this.edited(checked));
  private current: Current | undefined;
  private where: () => Where = () => ({});

  constructor(private readonly context: ViewContext) {
    const head = make("header", "head");
    const back = makeButton("icon back", "", () => context.go({ at: "jobs" }));
    back.append(icon("back"));
    back.setAttribute("aria-label", "Back to the list");
    const text = make("div", "head-text");
    text.append(make("h1", "", "Start a job"), make("p", "", "A job runs a saved plan of tasks, with checks."));
    head.append(back, text);
    const scroll = make("div", "scroll");
    scroll.append(this.form);
    this.element.append(head, scroll);
    this.build();
    this.load();
    void offerWhere(this.trouble, "", this.scope.signal).then((where) => (this.where = where));
  }

  private build(): void {
    this.jobs.id = "job";
    this.jobs.addEventListener("change", () => this.choose());
    this.folder.id = "folder";
    this.folder.spellcheck = false;
    this.folder.placeholder = "An absolute path";
    this.input.id = "job-input";
    this.input.rows = 3;
    this.input.dir = "auto";
    this.own.type = "checkbox";
    this.own.id = "own-entry";
    this.own.addEventListener("change", () => this.showEditor());
    this.button.id = "start-job";
    this.trouble.hidden = true;
    this.trouble.setAttribute("role", "alert");
    const check = make("label", "check");
    check.append(this.own, "Edit the plan (JSON, Ctrl+Space completes)");
    this.form.append(this.from, labelled("Job", this.jobs), labelled("Input for the job", this.input), labelled("Folder", this.folder), check, this.place, this.trouble, this.button);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.begin();
    });
  }

  private kept = takeKept();
  private readonly scope = new Scope();
  private readonly load = this.scope.latest(
    (signal) => Promise.all([v1.about(signal), call<Current>("GET", "/entry", undefined, signal)]),
    ([about, current]) => this.take(about, current),
    {
      failed: (error) => {
        this.from.textContent = explain(error);
        this.showKept(); // what was being edited is here without the host
      },
    },
  );

  leave(): void {
    this.scope.end();
  }

  private take(about: About, current: Current): void {
    this.current = current;
    this.from.textContent = `The jobs of ${current.name}.`;
    this.fill(Object.keys(current.entry.jobs));
    this.showKept();
    this.folder.value ||= about.workspaces[0] ?? "";
  }

  /** Once: a retry does not overwrite what was changed since. */
  private showKept(): void {
    const { kept } = this;
    this.kept = undefined;
    if (kept) {
      this.folder.value = kept.cwd ?? "";
      this.own.checked = true;
      this.input.value = kept.input ?? "";
      this.showEditor(kept.text);
      if (kept.job) this.jobs.value = kept.job;
    }
    this.choose();
  }

  private fill(names: string[]): void {
    const before = this.jobs.value;
    this.jobs.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(before)) this.jobs.value = before;
  }

  private showEditor(text?: string): void {
    this.place.replaceChildren(...(this.own.checked ? [this.editor.element] : []));
    this.form.classList.toggle("broad", this.own.checked);
    if (this.own.checked && (text !== undefined || this.editor.area.value === "")) this.editor.set(text ?? JSON.stringify(this.current?.entry ?? {}, null, 2));
    if (!this.own.checked && this.current) this.fill(Object.keys(this.current.entry.jobs));
    this.choose();
  }

  private edited(checked: Checked): void {
    if (!checked.mistake) this.fill(Object.keys(checked.chart ?? {}));
    this.button.disabled = Boolean(checked.mistake);
    this.choose();
  }

  /** The field for input is there where the job asks for some. */
  private choose(): void {
    const asks = this.own.checked ? this.editor.checked.inputs?.includes(this.jobs.value) : this.current?.entry.jobs[this.jobs.value]?.requireUserInput;
    const label = this.input.closest("label");
    if (label) label.hidden = !asks;
    this.input.required = Boolean(asks);
    if (this.own.checked) this.editor.show(this.jobs.value);
  }

  private async begin(): Promise<void> {
    this.button.disabled = true;
    this.trouble.hidden = true;
    try {
      const entry = this.own.checked ? { entry: JSON.parse(this.editor.area.value) as object } : {};
      const { job } = await call<{ job: string }>("POST", "/jobs", { job: this.jobs.value, cwd: this.folder.value.trim(), input: this.input.required ? this.input.value : "", ...this.where(), ...entry });
      this.context.go({ at: "job", id: job });
    } catch (error) {
      this.trouble.textContent = explain(error);
      this.trouble.hidden = false;
    }
    this.button.disabled = false;
  }
}

/** An entry that the page of a job handed over. */
function takeKept(): Kept | undefined {
  const text = sessionStorage.getItem("portico.entry");
  sessionStorage.removeItem("portico.entry");
  return text === null ? undefined : (JSON.parse(text) as Kept);
}

function labelled(text: string, field: HTMLElement): HTMLElement {
  const label = make("label", "", text);
  label.append(field);
  return label;
}
