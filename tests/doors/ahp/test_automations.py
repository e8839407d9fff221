"""Automations over AHP (0.9 to 1.0): a catalogue that clients fill, and runs that they start, watch and cancel."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from portico.doors.ahp.view.automations import definition, plan_of
from portico.doors.ahp.wire import uri
from portico.features.automations.automations import Automations
from portico.features.automations.commands import CreateAutomation, EditAutomation
from portico.features.automations.events import AutomationPlan, JobAction, PromptAction, Schedule
from portico.features.automations.state import AutomationState
from portico.kernel.commands import Caller
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient, opened

CATALOGUE = "ahp-automations://"
MINE = "ahp-automation:/0001"


def defined(text: str = "[[say:hello]]", **more: Any) -> Json:
    made: Json = {
        "title": "Morning review",
        "message": {"text": text, "origin": {"kind": "automation"}},
        "session": {"provider": "scripted"},
        "enabled": True,
        "triggers": [],
    }
    return made | more


def scheduled(expression: str = "0 7 * * *", **more: Any) -> list[Json]:
    return [
        {"id": "s", "kind": "schedule", "schedule": {"expression": expression, "timeZone": "Europe/Berlin"}, **more}
    ]


@pytest.fixture
async def automations(served: Served) -> AsyncIterator[Automations]:
    made = await Automations.open(served.host, None, served.home.path)
    served.app.automations = made
    await made.start()
    yield made
    await made.close()


def entries(client: WireClient) -> dict[str, Json]:
    return {each["resource"]: each for each in client.states[CATALOGUE]["entries"]}


async def begin(connect: Connect, version: str = "0.9.0", name: str = "tester") -> WireClient:
    client: WireClient = await connect(version, name)
    await client.subscribe(CATALOGUE)
    return client


async def added(client: WireClient) -> Json:
    found: Json = await client.wait(lambda: entries(client).get(MINE))
    return found


async def create(client: WireClient, resource: str = MINE, **more: Any) -> Json:
    return await client.act(CATALOGUE, "automation/createRequested", resource=resource, definition=defined(**more))


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_a_client_makes_changes_and_removes_one(
    connect: Connect, served: Served, automations: Automations, version: str
) -> None:
    client, other = await begin(connect, version), await begin(connect, "1.0.0", "other")
    assert "rejectionReason" not in await create(client, triggers=scheduled())
    for each in (client, other):
        found = await added(each)
        assert found["definition"] == defined(triggers=scheduled())
        assert (found["operations"], found["runs"]) == (["update", "remove", "run"], [])
        assert found["nextRunAt"].endswith("Z")
    assert "rejectionReason" not in await create(client, triggers=scheduled()), "the same once more is the same"
    assert "rejectionReason" in await create(client, title="Another")
    changes: Json = {"title": "Evening", "enabled": False, "triggers": scheduled("5 18 * * 1", misfirePolicy="skip")}
    await client.act(CATALOGUE, "automation/updateRequested", resource=MINE, changes=changes)
    await other.wait(lambda: entries(other)[MINE]["definition"] == defined(**changes))
    assert "nextRunAt" not in entries(other)[MINE]
    again = (await client.subscribe(CATALOGUE))["snapshot"]["state"]["entries"]
    assert again == [entries(other)[MINE]]
    await client.act(CATALOGUE, "automation/removed", resource=MINE)
    await other.wait(lambda: not entries(other))
    assert "rejectionReason" not in await client.act(CATALOGUE, "automation/removed", resource=MINE), "gone already"


@pytest.mark.parametrize(
    ("resource", "more", "reason"),
    [
        ("https://x", {}, "ahp-automation:/"),
        (MINE, {"message": {"text": "x", "origin": {"kind": "user"}}}, "origin"),
        (MINE, {"session": {"workingDirectories": ["file:///a", "file:///b"]}}, "one folder"),
        (
            MINE,
            {
                "message": {
                    "text": "x",
                    "origin": {"kind": "automation"},
                    "attachments": [{"type": "simple", "label": "x"}],
                }
            },
            "a text and one folder",
        ),
        (MINE, {"triggers": scheduled("@daily")}, "five fields"),
        (MINE, {"triggers": scheduled("61 * * * *")}, ""),
        (MINE, {"triggers": [*scheduled(), *scheduled()]}, "one trigger"),
        (MINE, {"triggers": [{"id": "e", "kind": "event", "type": "push"}]}, "one trigger"),
        (MINE, {"disableConditions": [{"kind": "afterRuns", "max": 0}]}, "number of runs"),
        (MINE, {"disableConditions": [{"kind": "afterRuns", "max": 1}] * 2}, "one condition"),
        (MINE, {"disableConditions": [{"kind": "afterDate"}]}, "a time with its zone"),
        (MINE, {"disableConditions": [{"kind": "afterDate", "date": "2027-01-31T09:00:00"}]}, "a time with its zone"),
        (MINE, {"disableConditions": [{"kind": "afterDate", "date": "soonTZ"}]}, "no time such as"),
    ],
)
async def test_what_is_refused(
    connect: Connect, automations: Automations, resource: str, more: Json, reason: str
) -> None:
    client = await begin(connect)
    echo = await client.act(CATALOGUE, "automation/createRequested", resource=resource, definition=defined() | more)
    assert reason in echo["rejectionReason"]
    assert not automations.store.automations


async def test_a_run_by_hand(connect: Connect, served: Served, automations: Automations) -> None:
    client = await begin(connect, "1.0.0")
    await create(client, text="hold")
    ran = await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId="r1")
    run = ran["resource"]
    await client.subscribe(run)
    await client.wait(lambda: client.states[run].get("primarySession"))
    assert client.states[run]["lifecycle"]["status"] == "running"
    assert client.states[run]["origin"] == {"kind": "manual"}
    await client.wait(lambda: entries(client)[MINE]["operations"] == ["update", "run"])
    for request in ("r1", "r2"):
        same = await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId=request)
        assert same == ran, "also another one, while it runs"
    assert "rejectionReason" in await client.act(CATALOGUE, "automation/removed", resource=MINE)
    assert "rejectionReason" not in await client.act(run, "automationRun/cancelRequested")
    await client.wait(lambda: client.states[run]["lifecycle"]["status"] == "cancelled")
    await client.wait(lambda: "remove" in entries(client)[MINE]["operations"])
    assert "rejectionReason" in await client.act(run, "automationRun/cancelRequested")
    summary = entries(client)[MINE]["runs"][0]
    assert (summary["resource"], summary["sessionCount"]) == (run, 1)
    assert summary["lifecycle"] == client.states[run]["lifecycle"]
    listed = (await client.request("listSessions", channel=client.root))["items"]
    [line] = [each for each in listed if each["resource"] == summary["primarySession"]]
    assert line["origin"] == {"kind": "automation", "automation": MINE, "run": run}
    await client.subscribe(summary["primarySession"])
    assert client.states[summary["primarySession"]]["origin"] == line["origin"]
    [added] = [each["params"]["summary"] for each in client.notices if each.get("method") == "root/sessionAdded"]
    assert added["origin"] == line["origin"]


@pytest.mark.parametrize(("version", "kind"), [("0.7.0", "user"), ("0.9.0", "automation"), ("1.0.0", "automation")])
async def test_the_first_message_of_a_run_says_where_it_comes_from(
    connect: Connect, automations: Automations, version: str, kind: str
) -> None:
    """It was told as a message of a person."""
    client, watcher = await begin(connect), await connect(version, "watcher")
    await create(client, text="hold")
    await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId="r1")
    await watcher.wait(lambda: any(each.get("method") == "root/sessionAdded" for each in watcher.notices))
    session = (await watcher.request("listSessions", channel=watcher.root))["items"][0]["resource"]
    await watcher.subscribe(chat := uri.default_chat(session))
    await watcher.wait(lambda: watcher.states[chat].get("activeTurn"))
    assert watcher.states[chat]["activeTurn"]["message"] == {"text": "hold", "origin": {"kind": kind}}


async def test_a_run_thinks_as_long_as_was_chosen_and_a_choice_can_be_taken_back(
    connect: Connect, served: Served, automations: Automations
) -> None:
    """What was chosen with the model was shown and not used, and a model that was taken away stayed."""
    client = await begin(connect, "1.0.0")
    chosen = {"id": "gpt-5.2", "config": {"reasoningEffort": "high"}}
    await create(client, session={"provider": "scripted", "model": chosen})
    await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId="r1")
    await client.wait(partial(done, client, 1))
    [summary] = served.host.list()
    assert (summary.model, summary.model_config) == ("gpt-5.2", {"reasoningEffort": "high"})
    changes = {"session": {"provider": "scripted"}}
    await client.act(CATALOGUE, "automation/updateRequested", resource=MINE, changes=changes)
    await client.wait(lambda: entries(client)[MINE]["definition"]["session"] == changes["session"])
    [state] = automations.store.automations.values()
    assert state.plan.prompt is not None
    assert (state.plan.prompt.model, state.plan.prompt.model_config) == ("", {})


def done(client: WireClient, number: int) -> bool:
    runs = entries(client)[MINE]["runs"]
    ended = [each["resource"] for each in runs if each["lifecycle"]["status"] == "completed"]
    return ended[:1] == [f"ahp-automation-run:/run-{number}"]


async def test_a_run_that_is_done_and_the_pages_of_history(
    connect: Connect, automations: Automations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico.doors.ahp.view.automations.HISTORY", 1)
    client = await begin(connect)
    await create(client)
    for number in range(3):
        await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId=f"r{number}")
        await client.wait(partial(done, client, number + 1))
    cursor = entries(client)[MINE]["runsNextCursor"]
    with pytest.raises(Refused):
        await client.request("fetchAutomationRuns", channel=CATALOGUE, automation=MINE, cursor="old")
    seen = []
    while cursor is not None:
        assert await client.request("fetchAutomationRuns", channel=CATALOGUE, automation=MINE, cursor=cursor) == {}
        seen.append(len(entries(client)[MINE]["runs"]))
        cursor = entries(client)[MINE].get("runsNextCursor")
    assert seen == [2, 3]
    assert await client.request("fetchAutomationRuns", channel=CATALOGUE, automation=MINE) == {}


async def test_who_comes_back_sees_what_has_changed(connect: Connect, automations: Automations) -> None:
    client, other = await begin(connect), await begin(connect, "0.9.0", "other")
    await create(client)
    await create(client, "ahp-automation:/2")
    await other.wait(lambda: len(entries(other)) == 2)
    await other.drop()
    await client.act(CATALOGUE, "automation/removed", resource=MINE)
    await client.act(CATALOGUE, "automation/updateRequested", resource="ahp-automation:/2", changes={"title": "New"})
    await client.wait(lambda: entries(client)["ahp-automation:/2"]["definition"]["title"] == "New")
    await other.reconnect()
    await other.wait(lambda: list(entries(other)) == ["ahp-automation:/2"])
    assert entries(other) == entries(client)


async def test_errors_and_what_is_offered(connect: Connect, served: Served, automations: Automations) -> None:
    client = await begin(connect)
    for method, params in (("runAutomation", {"requestId": "r"}), ("fetchAutomationRuns", {})):
        with pytest.raises(Refused) as refused:
            await client.request(method, channel=CATALOGUE, automation="ahp-automation:/none", **params)
        assert refused.value.code == -32001
    await create(client)
    with pytest.raises(Refused) as refused:
        await client.request("runAutomation", channel=CATALOGUE, automation=MINE, requestId="")
    assert refused.value.code == -32602
    assert await client.request("listAutomationTriggerDefinitions", channel=client.root) == {"items": []}
    offered = {}
    for version in ("0.8.0", "0.9.0", "1.0.0"):
        async with opened(WireClient(served.url, f"client-{version}", version)) as each:
            offered[version] = "automations" in await each.initialize(each.root)
    assert offered == {"0.8.0": False, "0.9.0": True, "1.0.0": True}


async def test_one_that_was_made_elsewhere_is_shown(connect: Connect, automations: Automations) -> None:
    plan = AutomationPlan(
        title="Nightly",
        schedule=Schedule(cron="0 3 * * *", zone="UTC"),
        prompt=PromptAction(text="look", agent="scripted", cwd="/tmp", model=""),
    )
    await automations.host.do(CreateAutomation(name="nightly", plan=plan), Caller.inside("tester"))
    client = await begin(connect)
    [shown] = client.states[CATALOGUE]["entries"]
    assert shown["resource"] == "ahp-automation:/automation-1"
    assert shown["definition"]["session"] == {"provider": "scripted", "workingDirectories": ["file:///tmp"]}
    assert plan_of(shown["definition"]).schedule == plan.schedule


def test_a_plan_that_changed_elsewhere_is_not_shown_as_it_was_said() -> None:
    said = defined()
    state = AutomationState("a", "a", plan_of(said), "x", [], 0, 0, 0, meta={"ahp": said})
    assert definition(state) == said
    state.plan = AutomationPlan(title="Other", job=JobAction("j", input="go"))
    assert definition(state)["title"] == "Other"


ELSEWHERE: dict[str, Json] = {
    "job": {"schedule": {"cron": "@daily"}, "job": {"job": "main"}, "overlap": "queue", "budget": {"dollars": 2.0}},
    "hook": {"hook": {"per_minute": 7}, "prompt": {"text": "look at {{/ref}}", "worktree": True, "base": "main"}},
    "prompt": {"schedule": {"cron": "0 3 * * *"}, "missed": "all", "prompt": {"text": "look", "agent": "scripted"}},
    "every": {"schedule": {"every": "2h"}, "prompt": {"text": "look", "agent": "scripted"}, "keep_runs": 7},
}
"""Plans that say what no editor can say."""


async def made_elsewhere(automations: Automations, kind: str) -> AutomationState:
    plan = msgspec.convert(ELSEWHERE[kind], AutomationPlan)
    await automations.host.do(CreateAutomation(name="nightly", plan=plan), Caller.inside("tester"))
    return automations.store.get("nightly")


@pytest.mark.parametrize("kind", ELSEWHERE)
async def test_what_an_editor_does_not_change_stays(connect: Connect, automations: Automations, kind: str) -> None:
    """VS Code sends every field it knows, whatever was changed: a job became a prompt, and a hook was gone."""
    state = await made_elsewhere(automations, kind)
    before = state.plan
    client = await begin(connect)
    [shown] = client.states[CATALOGUE]["entries"]
    said = shown["definition"]
    assert said["session"].get("provider") or said["session"].get("workingDirectories"), "or VS Code does not show it"
    for changes in ({**said, "enabled": False}, {"enabled": True}):
        resource = shown["resource"]
        echo = await client.act(CATALOGUE, "automation/updateRequested", resource=resource, changes=changes)
        assert "rejectionReason" not in echo
        assert (state.enabled, state.plan) == (changes["enabled"], before)
    await client.act(CATALOGUE, "automation/updateRequested", resource=resource, changes={**said, "title": "Other"})
    assert state.plan == msgspec.structs.replace(before, title="Other")
    await client.wait(lambda: entries(client)[resource]["definition"]["title"] == "Other")
    changes = {**said, "title": "Other", "message": {"text": "go", "origin": {"kind": "automation"}}}
    await client.act(CATALOGUE, "automation/updateRequested", resource=resource, changes=changes)
    assert (state.plan.job.input if state.plan.job else state.plan.prompt and state.plan.prompt.text) == "go"
    await client.wait(lambda: entries(client)[resource]["definition"]["message"]["text"] == "go")
    await client.act(CATALOGUE, "automation/removed", resource=resource)
    await client.wait(lambda: not entries(client))


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("hook", {"triggers": scheduled()}, "one of 'schedule', 'hook'"),
        ("job", {"session": {"provider": "scripted"}}, "a job"),
    ],
)
async def test_what_an_editor_cannot_say_of_it_is_refused(
    connect: Connect, automations: Automations, kind: str, changes: Json, reason: str
) -> None:
    state = await made_elsewhere(automations, kind)
    before, client = state.plan, await begin(connect)
    resource = client.states[CATALOGUE]["entries"][0]["resource"]
    echo = await client.act(CATALOGUE, "automation/updateRequested", resource=resource, changes=changes)
    assert reason in echo["rejectionReason"]
    assert state.plan == before


async def test_one_that_was_made_elsewhere_runs(connect: Connect, automations: Automations) -> None:
    """Only those were found that a client had made."""
    await made_elsewhere(automations, "prompt")
    client = await begin(connect)
    resource = client.states[CATALOGUE]["entries"][0]["resource"]
    ran = await client.request("runAutomation", channel=CATALOGUE, automation=resource, requestId="r1")
    await client.wait(lambda: [each["resource"] for each in entries(client)[resource]["runs"]] == [ran["resource"]])


async def test_what_a_client_said_is_shown_also_when_rules_change(connect: Connect, automations: Automations) -> None:
    """Rules that no editor knows made it forget the names that a client had given its triggers."""
    client = await begin(connect)
    await create(client, triggers=scheduled())
    [state] = automations.store.automations.values()
    plan = msgspec.structs.replace(state.plan, overlap="queue", keep_runs=7)
    await automations.host.do(EditAutomation(automation=state.id, plan=plan), Caller.inside("tester"))
    assert definition(state) == defined(triggers=scheduled())
