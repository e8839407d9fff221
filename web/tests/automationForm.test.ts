/** The form of an automation: which fields are there, what is sent, and where an error is shown. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AutomationForm } from "../src/app/automationForm";
import { takeSecret } from "../src/app/automationFrame";
import type { ViewContext } from "../src/app/view";
import { button, choose, submit, textOf, textsOf, type } from "./dom";
import { V1Host } from "./v1Host";

const ANSWERS = {
  "GET /agents": { agents: [{ id: "codex", name: "Codex", models: [{ id: "gpt", name: "GPT" }] }, { id: "claude", name: "Claude", missing: "No key." }], default: "codex" },
  "GET /entry": { entry: { jobs: { nightly: {}, weekly: {} } } },
  "GET ": { workspaces: ["/w/shop"], log: { seq: 1 } },
  "GET /workflows?cwd=/w/shop": { workflows: [{ name: "review" }] },
  "GET /automations": { automations: [{ id: "a1", name: "morning" }, { id: "a2", name: "evening" }] },
  "GET /hosts": { hosts: [] },
  "POST /automations/check": { when: "at 07:00", next: [] },
};

let host: V1Host;
let view: AutomationForm | undefined;
const go = vi.fn();

beforeEach(() => void (host = new V1Host({ ...ANSWERS })));
afterEach(() => {
  view?.leave();
  go.mockClear();
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

async function open(id?: string, answers: V1Host["answers"] = {}): Promise<void> {
  Object.assign(host.answers, answers);
  const rows = new Map([["s1", { session: { cwd: "/w/api" } }]]);
  view = new AutomationForm(id, { board: { rows }, go, titled: () => undefined } as unknown as ViewContext);
  document.body.replaceChildren(view.element);
  await vi.waitFor(() => expect(document.querySelector("#auto-automations")).not.toBeNull());
  await vi.waitFor(() => expect(options("prompt.agent").length).toBe(3));
  await vi.waitFor(() => expect(options("job.job").length).toBe(3));
}

const at = (path: string) => document.getElementById(`auto-field-${path}`) as HTMLInputElement;
const options = (path: string) => [...(at(path) as unknown as HTMLSelectElement).options].map(({ value }) => value);
const visible = () => [...document.querySelectorAll<HTMLElement>(".auto-field")].filter(({ hidden }) => !hidden).map((box) => box.querySelector("label, legend")!.textContent);
const wrong = (path: string) => document.getElementById(`wrong-${path}`)!;
const save = () => submit(document.querySelector("form")!);
const sent = (request: string) => host.bodies.get(request) as { name: string; plan: Record<string, Record<string, unknown>> };

describe("the fields", () => {
  test("a new one starts every weekday at 7:00 in the zone of the browser", async () => {
    await open();
    expect([at("when").value, at("daily.days").value, at("daily.time").value, at("schedule.zone").value]).toEqual(["daily", "1-5", "07:00", Intl.DateTimeFormat().resolvedOptions().timeZone]);
    expect(view?.title).toBe("New automation");
  });

  test.each<[string, string[], string[]]>([
    ["daily", ["Repeat", "At", "Time zone"], ["Cron", "Every"]],
    ["cron", ["Cron", "Time zone"], ["Repeat", "Every"]],
    ["every", ["Every"], ["Time zone", "Cron"]],
    ["at", ["At", "Time zone"], ["Repeat", "Cron"]],
    ["hook", ["Only if (optional)", "Calls in a minute, at most"], ["Time zone"]],
    ["files", ["Files", "But not", "Seconds without a further change"], ["Time zone"]],
    ["after", ["After the automation", "Or after the job", "How it ended"], ["Time zone"]],
    ["none", [], ["Repeat", "Cron", "Every", "Time zone"]],
  ])("the trigger %s has its own", async (when, there, absent) => {
    await open();
    choose(at("when"), when);
    const now = visible();
    expect(there.filter((each) => !now.includes(each))).toEqual([]);
    expect(absent.filter((each) => now.includes(each))).toEqual([]);
  });

  test("a job has other fields than a prompt", async () => {
    await open();
    expect(visible()).toContain("Prompt");
    choose(at("what"), "job");
    expect(visible()).toContain("Input for the job (optional)");
    expect(visible()).not.toContain("Prompt");
    expect(options("job.job")).toEqual(["review", "nightly", "weekly"]);
  });

  test("the models are those of the agent that is chosen", async () => {
    await open();
    expect(options("prompt.model")).toEqual([""]);
    choose(at("prompt.agent"), "codex");
    expect(options("prompt.model")).toEqual(["", "gpt"]);
    choose(at("prompt.agent"), "claude");
    expect(options("prompt.model")).toEqual([""]);
  });

  test("an agent that is not ready is marked", async () => {
    await open();
    expect([...(at("prompt.agent") as unknown as HTMLSelectElement).options].map(({ text }) => text)).toEqual(["The host's own choice", "Codex", "Claude (not ready)"]);
  });

  test("limits appear with the rule that needs them", async () => {
    await open();
    expect(visible()).not.toContain("Made up for at most");
    choose(at("missed"), "all");
    choose(at("overlap"), "parallel");
    expect(visible()).toEqual(expect.arrayContaining(["Made up for at most", "Side by side at most"]));
  });

  test("place and label are asked for only where there is a choice", async () => {
    await open();
    expect(visible()).not.toContain("Place");
    view?.leave();
    const hosts = [{ name: "one", place: "rack", labels: ["gpu"], state: "up" }, { name: "two", place: "desk", state: "up" }];
    await open(undefined, { "GET /hosts": { hosts } });
    await vi.waitFor(() => expect(visible()).toEqual(expect.arrayContaining(["Place", "Only at a host with the label"])));
    expect([options("prompt.place"), options("prompt.label")]).toEqual([["", "desk", "rack"], ["", "gpu"]]);
  });

  test("folders of the host and of open sessions are offered", async () => {
    await open();
    await vi.waitFor(() => expect([...document.querySelectorAll<HTMLOptionElement>("#auto-folders option")].map(({ value }) => value)).toEqual(["/w/shop", "/w/api"]));
  });

  test("the form works when the host answers none of its choices", async () => {
    host.down = true;
    view = new AutomationForm(undefined, { board: { rows: new Map() }, go, titled: () => undefined } as unknown as ViewContext);
    document.body.replaceChildren(view.element);
    expect([textOf(".trouble"), button("Create automation").disabled]).toEqual(["", false]);
  });
});

describe("the preview", () => {
  test("says in words when it is due", async () => {
    const next = Date.now() + 12 * 60_000;
    await open(undefined, { "POST /automations/check": { when: "every 2 hours", next: [next] } });
    choose(at("when"), "every");
    type(at("schedule.every"), "2h");
    at("schedule.every").dispatchEvent(new Event("change", { bubbles: true }));
    await vi.waitFor(() => expect(textOf(".auto-preview")).toBe("Every 2 hours. Next: in 12 min."));
  });

  test("is empty for a trigger without a time", async () => {
    await open();
    choose(at("when"), "hook");
    expect(document.querySelector<HTMLElement>(".auto-preview")!.hidden).toBe(true);
  });

  test("a mistake in the schedule is shown at its field, and removed when it is corrected", async () => {
    await open();
    host.answers["POST /automations/check"] = () => 400;
    vi.stubGlobal("fetch", vi.fn(async () => Response.json({ error: "61 is no minute.", field: "schedule.cron" }, { status: 400 })));
    choose(at("when"), "cron");
    type(at("schedule.cron"), "61 * * * *");
    at("schedule.cron").dispatchEvent(new Event("change", { bubbles: true }));
    await vi.waitFor(() => expect(wrong("schedule.cron").textContent).toBe("61 is no minute."));
    expect(at("schedule.cron").getAttribute("aria-invalid")).toBe("true");
    type(at("schedule.cron"), "6 * * * *");
    expect([wrong("schedule.cron").hidden, at("schedule.cron").hasAttribute("aria-invalid")]).toEqual([true, false]);
  });
});

describe("saving", () => {
  test("marks every needed field that is empty, and sends nothing", async () => {
    await open();
    save();
    expect([wrong("name").hidden, wrong("prompt.text").hidden]).toEqual([false, false]);
    expect(document.activeElement).toBe(at("name"));
    expect(host.calls).not.toContain("POST /automations");
    choose(at("what"), "job");
    at("job.job").replaceChildren();
    save();
    expect([wrong("job.job").hidden, wrong("prompt.text").hidden]).toEqual([false, true]);
  });

  test("sends the plan and opens the automation", async () => {
    await open(undefined, { "POST /automations": { automation: "a9" } });
    type(at("name"), " morning-review ");
    type(at("prompt.text"), "Review it");
    choose(at("prompt.agent"), "codex");
    at("prompt.worktree").click();
    save();
    await vi.waitFor(() => expect(go).toHaveBeenCalledWith({ at: "automations", id: "a9" }));
    expect(sent("POST /automations").name).toBe("morning-review");
    expect(sent("POST /automations").plan["prompt"]).toMatchObject({ text: "Review it", agent: "codex", worktree: true });
    expect(sent("POST /automations").plan["schedule"]).toMatchObject({ cron: "0 7 * * 1-5" });
  });

  test("the secret of a hook is handed to the next page once", async () => {
    await open(undefined, { "POST /automations": { automation: "a9", secret: "shh" } });
    type(at("name"), "hook");
    type(at("prompt.text"), "Go");
    choose(at("when"), "hook");
    save();
    await vi.waitFor(() => expect(go).toHaveBeenCalled());
    expect([takeSecret("a9"), takeSecret("a9")]).toEqual(["shh", ""]);
  });

  test("outcomes are sent as they are ticked", async () => {
    await open(undefined, { "POST /automations": { automation: "a9" } });
    type(at("name"), "after");
    type(at("prompt.text"), "Go");
    choose(at("when"), "after");
    type(at("after.automation"), "morning");
    document.querySelector<HTMLInputElement>("input[value=failed]")!.click();
    save();
    await vi.waitFor(() => expect(go).toHaveBeenCalled());
    expect(sent("POST /automations").plan["after"]).toEqual({ automation: "morning", outcomes: ["failed"] });
  });

  test("an error that names a field is shown there, also below the closed rules", async () => {
    await open();
    type(at("name"), "x");
    type(at("prompt.text"), "Go");
    vi.stubGlobal("fetch", async () => Response.json({ error: "At least 1.", field: "plan.parallel" }, { status: 400 }));
    choose(at("overlap"), "parallel");
    save();
    await vi.waitFor(() => expect(wrong("parallel").textContent).toBe("At least 1."));
    expect(document.querySelector("details")!.open).toBe(true);
    expect(document.activeElement).toBe(at("parallel"));
    expect(button("Create automation").disabled).toBe(false);
  });

  test("an error without a field is shown above the buttons", async () => {
    await open(undefined, { "POST /automations": 403 });
    type(at("name"), "x");
    type(at("prompt.text"), "Go");
    save();
    await vi.waitFor(() => expect(textOf(".trouble")).toBe("refused with 403"));
    expect(go).not.toHaveBeenCalled();
  });

  test("Cancel leads back", async () => {
    await open();
    button("Cancel").click();
    expect(go).toHaveBeenCalledWith({ at: "automations" });
  });
});

describe("editing", () => {
  const STORED = { id: "a1", name: "morning", source: "door", plan: { title: "Morning", schedule: { every: "2h" }, prompt: { text: "Hi", agent: "codex" } } };

  test("shows the stored plan and changes it", async () => {
    await open("a1", { "GET /automations/a1": STORED, "PATCH /automations/a1": {} });
    await vi.waitFor(() => expect(at("name").value).toBe("morning"));
    expect([at("when").value, at("schedule.every").value, at("prompt.text").value]).toEqual(["every", "2h", "Hi"]);
    type(at("schedule.every"), "3h");
    button("Save").click();
    await vi.waitFor(() => expect(go).toHaveBeenCalledWith({ at: "automations", id: "a1" }));
    expect(sent("PATCH /automations/a1").plan).toMatchObject({ title: "Morning", schedule: { every: "3h" } });
  });

  test("Save waits for the plan: it would replace it by the defaults of the form", async () => {
    let answer: (stored: object) => void = () => undefined;
    await open("a1", { "GET /automations/a1": () => new Promise<object>((done) => (answer = done)) });
    expect(button("Save").disabled).toBe(true);
    answer(STORED);
    await vi.waitFor(() => expect(button("Save").disabled).toBe(false));
  });

  test("it is not offered as its own predecessor", async () => {
    await open("a1", { "GET /automations/a1": STORED });
    expect([...document.querySelectorAll<HTMLOptionElement>("#auto-automations option")].map(({ value }) => value)).toEqual(["evening"]);
  });

  test("one of a file says where it is changed", async () => {
    await open("a1", { "GET /automations/a1": { ...STORED, source: "file" } });
    await vi.waitFor(() => expect(textOf(".trouble")).toBe("It is written in automations.toml: change it there."));
  });

  test("several triggers stay as they are", async () => {
    const on = [{ schedule: { every: "2h" } }, { hook: {} }];
    await open("a1", { "GET /automations/a1": { ...STORED, plan: { on, prompt: { text: "Hi" } } }, "PATCH /automations/a1": {} });
    await vi.waitFor(() => expect(at("when").value).toBe("several"));
    button("Save").click();
    await vi.waitFor(() => expect(go).toHaveBeenCalled());
    expect(sent("PATCH /automations/a1").plan["on"]).toEqual(on);
    expect(textsOf("#auto-field-when option")[0]).toBe("Several triggers, as they are");
  });
});

describe("the inputs of a workflow", () => {
  const inputs = { title: { about: "What to do", from: "/issue/title" }, loud: { type: "boolean", default: false }, files: { type: "list", default: [] } };
  const workflow = { "GET /workflows?cwd=/w/shop": { workflows: [{ name: "review", inputs }] } };
  const input = (name: string) => document.getElementById(`input-${name}`) as HTMLInputElement;
  const about = (name: string) => document.getElementById(`input-${name}-about`)?.textContent;

  test("are fields, in place of one text", async () => {
    await open(undefined, workflow);
    expect(document.querySelector(".job-inputs")).toBeNull();
    choose(at("what"), "job");
    expect([visible().includes("Input for the job (optional)"), input("title").required, about("title")]).toEqual([false, true, "What to do."]);
    type(at("name"), "nightly");
    type(input("title"), "Do it");
    type(input("files"), "a, b");
    save();
    await vi.waitFor(() => expect(sent("POST /automations").plan["job"]).toEqual({ job: "review", inputs: { title: "Do it", files: ["a", "b"] } }));
  });

  test("a job of the entry has one text", async () => {
    await open(undefined, workflow);
    choose(at("what"), "job");
    choose(at("job.job"), "weekly");
    expect([visible().includes("Input for the job (optional)"), document.querySelector(".job-inputs")]).toEqual([true, null]);
  });

  test("an empty one with a pointer is taken from the call of the hook", async () => {
    await open(undefined, workflow);
    choose(at("when"), "hook");
    choose(at("what"), "job");
    expect([input("title").required, about("title")]).toEqual([false, "What to do. Empty: the value at /issue/title of the call."]);
    type(at("name"), "triage");
    save();
    await vi.waitFor(() => expect(sent("POST /automations").plan["job"]).toEqual({ job: "review" }));
  });

  test("those of an automation are shown, and kept if the workflow is not known here", async () => {
    const plan = { job: { job: "review", cwd: "/w/shop", inputs: { title: "Old", loud: true, files: ["x", "y"] } }, schedule: { cron: "0 7 * * 1-5" } };
    await open("a1", { ...workflow, "GET /automations/a1": { plan, name: "nightly", source: "api" }, "PATCH /automations/a1": {} });
    await vi.waitFor(() => expect(input("title").value).toBe("Old"));
    expect([input("loud").checked, input("files").value]).toEqual([true, "x\ny"]);
    save();
    await vi.waitFor(() => expect(sent("PATCH /automations/a1").plan["job"]).toEqual(plan.job));
  });
});
