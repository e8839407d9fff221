"""Automations on the wire: what a client's definition asks for, what is refused, and how a run stands."""

from types import SimpleNamespace
from typing import Any

import pytest

from portico.doors.ahp.view import automations
from portico.features.automations.events import AutomationPlan, JobAction, PromptAction, Schedule
from portico.features.automations.state import AutomationState, RunSummary
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json

HOST: Any = SimpleNamespace(
    find=lambda ident: SimpleNamespace(
        summary=SimpleNamespace(uri=None, parent=None, promoted=False, agent="loop", id=ident)
    ),
    default_folder=lambda: "/w",
)


def said(**fields: Any) -> Json:
    message = {"text": "look", "origin": {"kind": "automation"}}
    return {"title": "Morning", "message": message, "session": {}, "triggers": [], **fields}


def trigger(**fields: Any) -> Json:
    schedule = {"expression": "0 7 * * *", "timeZone": "Europe/Berlin"}
    return {"id": "s", "kind": "schedule", "schedule": schedule, **fields}


PROMPT = PromptAction(text="look", title="Morning")
PLANS: dict[str, tuple[Json, AutomationPlan]] = {
    "a text": (said(), AutomationPlan(title="Morning", prompt=PROMPT)),
    "a schedule": (
        said(triggers=[trigger()]),
        AutomationPlan(title="Morning", prompt=PROMPT, schedule=Schedule(cron="0 7 * * *", zone="Europe/Berlin")),
    ),
    "one that is not made up for": (
        said(triggers=[trigger(misfirePolicy="skip")]),
        AutomationPlan(
            title="Morning",
            prompt=PROMPT,
            schedule=Schedule(cron="0 7 * * *", zone="Europe/Berlin"),
            missed="skip",
        ),
    ),
    "so many runs": (
        said(disableConditions=[{"kind": "afterRuns", "max": 3}]),
        AutomationPlan(title="Morning", prompt=PROMPT, stop_after_runs=3),
    ),
    "until a date": (
        said(disableConditions=[{"kind": "afterDate", "date": "2027-01-01T00:00:00Z"}]),
        AutomationPlan(title="Morning", prompt=PROMPT, stop_at="2027-01-01T00:00:00Z"),
    ),
    "an agent, a model and a folder": (
        said(
            session={
                "provider": "loop",
                "model": {"id": "m", "config": {"effort": "low"}},
                "workingDirectories": ["file:///w%20x"],
                "config": {"mode": "plan"},
            }
        ),
        AutomationPlan(
            title="Morning",
            prompt=PromptAction(
                text="look",
                title="Morning",
                agent="loop",
                model="m",
                model_config={"effort": "low"},
                cwd="/w x",
                config={"mode": "plan"},
            ),
        ),
    ),
}


@pytest.mark.parametrize(("definition", "plan"), PLANS.values(), ids=PLANS)
def test_what_a_definition_asks_for(definition: Json, plan: AutomationPlan) -> None:
    found = automations.plan_of(definition)
    assert found.prompt == plan.prompt
    fields = ("title", "schedule", "stop_after_runs", "stop_at")
    assert [getattr(found, name) for name in fields] == [getattr(plan, name) for name in fields]
    assert found.missed == ("skip" if plan.missed == "skip" else "last")


WRONG: dict[str, tuple[Json, str]] = {
    "a person's message": (said(message={"text": "x", "origin": {"kind": "user"}}), "definition.message.origin"),
    "no message": (said(message=None), "definition.message.origin"),
    "no text": (said(message={"origin": {"kind": "automation"}}), "definition.message.text"),
    "no title": (said(title=None), "definition.message.text"),
    "attachments": (
        said(message={"text": "x", "origin": {"kind": "automation"}, "attachments": [{}]}),
        "definition.message.attachments",
    ),
    "two folders": (said(session={"workingDirectories": ["file:///a", "file:///b"]}), "definition.message.attachments"),
    "two triggers": (said(triggers=[trigger(), trigger()]), "definition.triggers"),
    "a trigger of another kind": (said(triggers=[trigger(kind="hook")]), "definition.triggers"),
    "a trigger without an id": (said(triggers=[trigger(id="")]), "definition.triggers"),
    "no trigger at all": (said(triggers=["daily"]), "definition.triggers"),
    "six fields": (
        said(triggers=[trigger(schedule={"expression": "0 0 7 * * *", "timeZone": "UTC"})]),
        "definition.triggers",
    ),
    "no zone": (said(triggers=[trigger(schedule={"expression": "0 7 * * *"})]), "definition.triggers"),
    "no runs": (said(disableConditions=[{"kind": "afterRuns", "max": 0}]), "disableConditions"),
    "runs that are none": (said(disableConditions=[{"kind": "afterRuns", "max": True}]), "disableConditions"),
    "a date without a zone": (
        said(disableConditions=[{"kind": "afterDate", "date": "2027-01-01T00:00:00"}]),
        "disableConditions",
    ),
    "a day": (said(disableConditions=[{"kind": "afterDate", "date": "2027-01-01"}]), "disableConditions"),
    "the same twice": (said(disableConditions=[{"kind": "afterRuns", "max": 1}] * 2), "disableConditions"),
    "an unknown condition": (said(disableConditions=[{"kind": "afterLunch"}]), "disableConditions"),
    "a condition that is none": (said(disableConditions=["soon"]), "disableConditions"),
}


@pytest.mark.parametrize(("definition", "field"), WRONG.values(), ids=WRONG)
def test_what_this_host_cannot_do_is_named(definition: Json, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        automations.plan_of(definition)
    assert refused.value.field == field


def automation(plan: AutomationPlan, **fields: Any) -> AutomationState:
    given: Json = {"id": "a-1", "name": "morning", "enabled": True, "by": "me", "source": "door", "scopes": []}
    given |= {"created": 0, "modified": 0, "since": 0}
    return AutomationState(**{**given, "plan": plan, **fields})


@pytest.mark.parametrize("definition", [each for each, _ in PLANS.values()], ids=list(PLANS))
def test_what_a_client_wrote_is_shown_as_it_wrote_it(definition: Json) -> None:
    """Clients wait until they see just what they asked for."""
    kept = automation(automations.plan_of(definition), meta={automations.SAID: definition})
    assert automations.definition(kept) == {**definition, "enabled": True}


def test_what_is_true_no_more_is_described_from_the_plan() -> None:
    plan = AutomationPlan(title="Other", prompt=PromptAction(text="new", agent="loop", model="m"))
    shown = automations.definition(automation(plan, meta={automations.SAID: said()}, enabled=False))
    assert (shown["title"], shown["session"]["provider"], shown["session"]["model"]) == ("Other", "loop", {"id": "m"})
    assert shown["enabled"] is False


@pytest.mark.parametrize(
    ("plan", "folders"),
    [
        (AutomationPlan(prompt=PromptAction(text="x")), ["file:///w"]),
        (AutomationPlan(prompt=PromptAction(text="x", cwd="/x")), ["file:///x"]),
        (AutomationPlan(prompt=PromptAction(text="x", agent="loop")), None),
        (AutomationPlan(job=JobAction(job="j")), ["file:///w"]),
        (AutomationPlan(job=JobAction(job="j", cwd="/x")), ["file:///x"]),
    ],
    ids=["nothing said", "a folder", "an agent", "a job", "a job in a folder"],
)
def test_an_automation_has_an_agent_or_a_folder(plan: AutomationPlan, folders: list[str] | None) -> None:
    """VS Code shows none without."""
    shown = automations.definition(automation(plan), "/w")["session"]
    assert shown.get("workingDirectories") == folders


CHANGES: dict[str, tuple[Json, Json]] = {
    "another text": ({"message": {"text": "new", "origin": {"kind": "automation"}}}, {"text": "new"}),
    "another agent": ({"session": {"provider": "loop"}}, {"agent": "loop"}),
}


@pytest.mark.parametrize(("wanted", "prompt"), CHANGES.values(), ids=CHANGES)
def test_only_what_differs_is_changed(wanted: Json, prompt: Json) -> None:
    plan = AutomationPlan(title="Morning", prompt=PromptAction(text="look", title="T", worktree=True), keep_days=3)
    found = automations.changed(plan, said(), said(**wanted))
    assert found.prompt is not None
    assert {name: getattr(found.prompt, name) for name in prompt} == prompt
    assert (found.prompt.worktree, found.prompt.title, found.keep_days) == (True, "T", 3)


def test_a_job_has_its_agents_in_its_entry() -> None:
    plan = AutomationPlan(title="Morning", job=JobAction(job="j", input="look"))
    text = {"text": "new", "origin": {"kind": "automation"}}
    changed = automations.changed(plan, said(), said(message=text))
    assert changed.job == JobAction(job="j", input="new")
    with pytest.raises(BadRequest, match="the entry says which agents"):
        automations.changed(plan, said(), said(session={"provider": "loop"}))


def run(status: Any = "running", **fields: Any) -> RunSummary:
    given = {"automation": "a-1", "name": "morning", "cause": "schedule", "due": 1_000, "claimed": 2_000, "by": "x"}
    return RunSummary(**{"id": "run-1", "status": status, **given, **fields})


AT2, AT3, AT9 = "1970-01-01T00:00:02.000Z", "1970-01-01T00:00:03.000Z", "1970-01-01T00:00:09.000Z"
LIVES: dict[str, tuple[RunSummary, Json]] = {
    "pending": (run("pending"), {"status": "pending", "createdAt": AT2}),
    "running": (run("running", started=3_000), {"status": "running", "createdAt": AT2, "startedAt": AT3}),
    "done": (
        run("succeeded", started=3_000, ended=9_000),
        {"status": "completed", "createdAt": AT2, "startedAt": AT3, "completedAt": AT9},
    ),
    "done without a start": (
        run("succeeded", ended=9_000),
        {"status": "completed", "createdAt": AT2, "startedAt": AT2, "completedAt": AT9},
    ),
    "failed": (
        run("failed", ended=9_000, reason="It broke."),
        {
            "status": "failed",
            "createdAt": AT2,
            "completedAt": AT9,
            "error": {"errorType": "automationExecution", "message": "It broke."},
        },
    ),
    "failed without a word": (
        run("failed"),
        {
            "status": "failed",
            "createdAt": AT2,
            "completedAt": AT2,
            "error": {"errorType": "automationExecution", "message": "The run failed."},
        },
    ),
    "cancelled": (run("canceled", ended=9_000), {"status": "cancelled", "createdAt": AT2, "completedAt": AT9}),
    "skipped": (run("skipped"), {"status": "cancelled", "createdAt": AT2, "completedAt": AT2}),
}


@pytest.mark.parametrize(("of", "life"), LIVES.values(), ids=LIVES)
def test_how_a_run_stands(of: RunSummary, life: Json) -> None:
    assert automations.lifecycle(of) == life


@pytest.mark.parametrize(
    ("of", "origin"),
    [
        (run(cause="person"), {"kind": "manual"}),
        (run(), {"kind": "trigger", "triggerId": "schedule", "scheduledFor": "1970-01-01T00:00:01.000Z"}),
        (
            run(late=True),
            {
                "kind": "trigger",
                "triggerId": "schedule",
                "scheduledFor": "1970-01-01T00:00:01.000Z",
                "catchUp": True,
            },
        ),
        (run(cause="hook"), {"kind": "trigger", "triggerId": "hook"}),
    ],
    ids=["by hand", "by its schedule", "late", "by a call"],
)
def test_why_a_run_began(of: RunSummary, origin: Json) -> None:
    assert automations.origin(None, of) == origin


def test_a_run_names_the_trigger_of_its_definition() -> None:
    definition = said(triggers=[trigger(id="mine")])
    kept = automation(automations.plan_of(definition), meta={automations.SAID: definition})
    assert automations.origin(kept, run())["triggerId"] == "mine"


@pytest.mark.parametrize(
    ("of", "sessions"), [(run(), []), (run(session="session-7"), ["loop:/session-7"])], ids=["none yet", "its own"]
)
def test_the_session_of_a_run(of: RunSummary, sessions: list[str]) -> None:
    shown = automations.state(HOST, None, of)
    assert (shown["sessions"], shown.get("primarySession")) == (sessions, sessions[0] if sessions else None)
    assert shown["automation"] == "ahp-automation:/a-1"


@pytest.mark.parametrize(
    ("source", "status", "operations"),
    [
        ("door", "succeeded", ["update", "remove", "run"]),
        ("door", "running", ["update", "run"]),
        ("file", "succeeded", ["run"]),
    ],
    ids=["ours", "while it runs", "what stands in a file"],
)
def test_what_can_be_done_with_an_automation(source: str, status: str, operations: list[str]) -> None:
    kept = automation(AutomationPlan(prompt=PROMPT), source=source)
    assert automations.entry(HOST, kept, [run(status)], None)["operations"] == operations


def test_a_long_history_is_shown_in_part_and_newest_first() -> None:
    kept, runs = automation(AutomationPlan(prompt=PROMPT)), [run("succeeded", id=f"run-{n}") for n in (1, 2, 3)]
    shown = automations.entry(HOST, kept, runs, 5_000, shown=2)
    assert [each["resource"] for each in shown["runs"]] == ["ahp-automation-run:/run-3", "ahp-automation-run:/run-2"]
    assert (shown["runsNextCursor"], shown["nextRunAt"]) == ("run-2", "1970-01-01T00:00:05.000Z")
    whole = automations.entry(HOST, kept, runs, None)
    assert "runsNextCursor" not in whole
    assert "nextRunAt" not in whole
