"""What VS Code and the Copilot CLI were seen to do with us, one by one."""

import asyncio
import logging
from pathlib import Path

import pytest

from portico.doors.ahp.view import git_meta
from portico.kernel.events import Message
from portico.kernel.turn import Turn
from portico.testing.play import PlayAgent
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_changesets import folder, git
from tests.doors.ahp.wire_client import Json, Refused, WireClient

SESSION = "scripted:/s1"

__all__ = ["folder"]


# -- versions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offered", "spoken"), [("1.1.0", "1.1.0"), ("1.7.3", "1.7.3"), ("0.9.4", "0.9.4")])
async def test_a_later_version_is_accepted_as_it_was_offered(served: Served, offered: str, spoken: str) -> None:
    client = WireClient(served.url, "tester", offered)
    await client.open()
    result = await client.initialize(client.root)
    assert result["protocolVersion"] == spoken
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "[[say:hello]]")
    assert (await client.idle(chat))["turns"][0]["state"] == "complete"
    await client.close()


@pytest.mark.parametrize("version", ["0.5.1", "0.5.2", "0.6.0", "0.7.0"])
async def test_a_source_without_a_kind_was_a_fork_once(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "one", "[[say:hello]]")
    await client.idle(chat)
    create = {"channel": SESSION, "chat": "ahp-chat://fork/x", "source": {"chat": chat, "turnId": "one"}}
    if version == "0.7.0":
        with pytest.raises(Refused) as refused:
            await client.request("createChat", **create)
        assert refused.value.code == -32602
        return
    await client.request("createChat", **create)
    await client.subscribe("ahp-chat://fork/x")
    assert [turn["id"] for turn in client.states["ahp-chat://fork/x"]["turns"]] == ["one"]


@pytest.mark.parametrize(("version", "beside"), [("0.5.1", True), ("0.5.2", True), ("0.6.0", False), ("0.9.0", False)])
async def test_open_questions_stand_beside_the_turn_in_the_oldest_versions(
    connect: Connect, version: str, beside: bool
) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "ask me")
    asked = await client.action("chat/inputRequested")
    late: WireClient = await connect(version, "late")
    await late.subscribe(chat)
    for each in (client, late):
        assert each.states[chat].get("inputRequests") == ([asked["request"]] if beside else None)
    which = {"requestId": asked["request"]["id"]}
    answer = {"which": {"state": "submitted", "value": {"kind": "text", "value": "yes"}}}
    await client.act(chat, "chat/inputCompleted", **which, response="accept", answers=answer)
    for each in (client, late):
        assert "inputRequests" not in await each.idle(chat)


# -- failures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "fields"),
    [("0.5.1", {"error", "part"}), ("0.8.0", {"error", "part"}), ("0.9.0", {"part"}), ("1.0.0", {"part"})],
)
async def test_an_error_comes_as_a_part_alone(connect: Connect, version: str, fields: set[str]) -> None:
    """With `error` beside it VS Code rebuilt the part without `resumable`: there was no button to go on."""
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "fail")
    error = await client.action("chat/error")
    assert {*error} - {"type", "turnId", "duration"} == fields
    assert error["part"]["resumable"] is True
    await client.drop()
    await client.reconnect()
    assert client.states[chat]["turns"][0]["state"] == "error"


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_a_turn_that_the_end_of_the_host_cut_off_can_be_resumed(
    served: Served, connect: Connect, version: str
) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "[[hang]]")
    await served.restart()
    client.url = served.url
    await client.reconnect()
    [turn] = client.states[chat]["turns"]
    part = turn["responseParts"][-1]
    assert (part["kind"], part["error"]["errorType"], part["resumable"]) == ("error", "executionInterrupted", True)


async def test_a_yes_behind_a_stop_is_refused(served: Served, connect: Connect) -> None:
    """VS Code sends `approved: true` within 20 ms of Stop; with an agent that is slow to stop it counted."""
    decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    again: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("bash", '{"command":"rm x"}', kind="execute")
        decided.set_result((await call.approve("shell", command="rm x")).allowed)
        again.set_result((await turn.tool("bash", "{}").approve("shell", command="rm y")).allowed)
        await over.wait()

    served.host.agents["slow"] = PlayAgent(play, "slow", obeys=True)
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    chat = await client.create_session("slow:/s1", provider="slow")
    await other.subscribe(chat)
    await client.say(chat, "t", "go")
    ready = await client.action("chat/toolCallReady")
    await client.dispatch(chat, "chat/turnCancelled", turnId="t")
    assert await decided is False
    assert await again is False  # what it asks for afterwards waits for nobody
    yes = {"turnId": "t", "toolCallId": ready["toolCallId"], "approved": True, "confirmed": "user-action"}
    echo = await other.act(chat, "chat/toolCallConfirmed", **yes)
    assert "cancelled" in echo["rejectionReason"]
    late = await client.dispatch(chat, "chat/toolCallConfirmed", **yes)
    over.set()
    assert "rejectionReason" in await client.echo(late)
    state = await client.idle(chat)
    assert state["turns"][0]["state"] == "cancelled"
    assert {part["toolCall"]["status"] for part in state["turns"][0]["responseParts"]} == {"cancelled"}


# -- the rest --------------------------------------------------------------------------------------------------


async def test_a_steering_message_stays_in_the_chat(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "write it")
    ready = await client.action(client.verb("toolCallReady"))
    field = "userMessage" if client.seed else "message"
    said: Json = {"text": "*faster*"} if client.seed else {"text": "*faster*", "origin": {"kind": "user"}}
    await client.act(chat, client.verb("pendingMessageSet"), kind="steering", id="m1", **{field: said})
    await client.wait(lambda: "steeringMessage" not in client.states[chat])
    yes = {"turnId": "t", "toolCallId": ready["toolCallId"], "approved": True, "confirmed": "user-action"}
    await client.act(chat, client.verb("toolCallConfirmed"), **yes)
    turn = (await client.idle(chat))["turns"][0]
    told = r"Added during the turn\: \*faster\*"
    assert told in str(turn["responseParts"]).replace("\\\\", "\\")


async def test_older_turns_come_page_by_page_without_a_cursor(connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    chat = await client.create_session(SESSION)
    for turn in ("one", "two", "three"):
        await client.say(chat, turn, f"[[say:{turn}]]")
        await client.idle(chat)
    late: WireClient = await connect("0.9.0", "late")
    await late.subscribe(chat, view={"turns": 1})

    def turns() -> list[str]:
        return [turn["id"] for turn in late.states[chat]["turns"]]

    assert turns() == ["three"]
    await late.request("fetchTurns", channel=chat)
    assert turns() == ["one", "two", "three"]
    assert "turnsNextCursor" not in late.states[chat]
    await client.request("fetchTurns", channel=chat)  # it has all of them: there is nothing older
    assert (await client.action("chat/turnsLoaded"))["turns"] == []


async def test_the_log_channel_speaks_at_its_level(served: Served, connect: Connect) -> None:
    """The lines of a level below the host's own were never made."""
    logger = logging.getLogger("portico.test")
    usual = logging.getLogger("portico").level
    client: WireClient = await connect("0.9.0")
    for level, heard in (("debug", ["debug", "info", "warning"]), ("info", ["info", "warning"]), ("warn", ["warning"])):
        name = f"ahp-otlp://logs?level={level}"
        await client.subscribe(name)
        for word in ("debug", "info", "warning"):
            getattr(logger, word)(word)
        await client.request("ping", channel=client.root)
        lines = [
            each["params"]["payload"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["body"]["stringValue"]
            for each in client.notices
            if each.get("method") == "otlp/exportLogs"
        ]
        assert lines == heard
        client.notices.clear()
        await client.notify("unsubscribe", channel=name)
        await client.request("listSessions", channel=client.root)
    assert logging.getLogger("portico").level == usual


@pytest.mark.usefixtures("folder")
async def test_the_branch_can_be_chosen_for_a_worktree_only(served: Served, connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    for isolation, fixed in (("folder", True), ("worktree", None), (None, True)):
        given = {} if isolation is None else {"isolation": isolation}
        params = {"provider": "scripted", "workingDirectory": served.work.as_uri(), "config": given}
        found = await client.request("resolveSessionConfig", channel=client.root, **params)
        assert found["schema"]["properties"]["branch"].get("readOnly") is fixed


async def test_lists_say_what_a_session_is_doing(connect: Connect, version: str) -> None:
    client, other = await connect(version), await connect(version, "other")
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "run make all")
    ready = await client.action(client.verb("toolCallReady"))
    doing = "Wants to run make all"

    def told() -> list[Json]:
        said = [each["params"].get("notification", each["params"]) for each in other.notices if "params" in each]
        return [each["changes"] for each in said if "activity" in each.get("changes", {})]

    await other.wait(told)
    assert told()[0]["activity"] == doing
    root: Json = {} if client.seed else {"channel": client.root}
    assert (await client.request("listSessions", **root))["items"][0]["activity"] == doing
    late: WireClient = await connect(version, "late")
    await late.subscribe(chat)
    for each in (client, late):
        state = each.states[chat]
        assert (state["summary"] if each.seed else state)["activity"] == doing
    if not client.seed:
        assert client.states[SESSION]["activity"] == doing
    yes = {"turnId": "t", "toolCallId": ready["toolCallId"], "approved": True, "confirmed": "user-action"}
    await client.act(chat, client.verb("toolCallConfirmed"), **yes)
    state = await client.idle(chat)
    assert "activity" not in (state["summary"] if client.seed else state)
    await other.wait(lambda: told()[-1]["activity"] == "")
    assert "activity" not in (await client.request("listSessions", **root))["items"][0]


async def test_a_card_says_why_it_asks(connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    chat = await client.create_session(SESSION)
    for count, (turn, text, why, safety) in enumerate(
        [
            ("one", "run make all", r"No rule lets it pass\.", 0.5),
            ("two", "write it", r"It always asks\: a protected file\.", 0.2),
        ],
        1,
    ):
        await client.say(chat, turn, text)
        asked = await _ready(client, count)
        assert asked["riskAssessment"] == {
            "kind": "judge",
            "status": "complete",
            "reason": {"markdown": why},
            "safety": safety,
        }
        no = {"turnId": turn, "toolCallId": asked["toolCallId"], "approved": False, "reason": "denied"}
        await client.act(chat, "chat/toolCallConfirmed", **no)
        await client.idle(chat)


async def _ready(client: WireClient, count: int) -> Json:
    """The card number `count`."""

    def cards() -> list[Json]:
        return [each for each in client.actions("chat/toolCallReady") if "confirmationTitle" in each]

    await client.wait(lambda: len(cards()) == count)
    return cards()[-1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("version", "meanwhile"), [("0.9.0", "computing"), ("1.0.0", "recomputing")])
async def test_a_changeset_says_that_it_is_being_computed(connect: Connect, version: str, meanwhile: str) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION, config={"approvals": "allow"})
    name = f"{SESSION}/changeset/uncommitted"
    await client.subscribe(name)
    await client.say(chat, "t", "edit a.txt")
    await client.wait(lambda: client.states[name]["files"] and client.states[name]["status"] == "ready")
    assert [each["status"] for each in client.actions("changeset/statusChanged")] == [meanwhile, "ready"]


async def test_a_session_says_how_its_folder_stands(served: Served, folder: Path, connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    chat = await client.create_session(SESSION, config={"approvals": "allow"})
    assert client.states[SESSION]["_meta"]["git"] == {"branchName": "main", "uncommittedChanges": 0}
    await client.say(chat, "t", "edit a.txt")
    await client.idle(chat)
    await client.wait(lambda: client.states[SESSION]["_meta"]["git"]["uncommittedChanges"] == 1)
    listed = (await client.request("listSessions", channel=client.root))["items"]
    assert [each["_meta"]["git"]["uncommittedChanges"] for each in listed] == [1]

    def told() -> list[int]:
        lines = [each["params"].get("summary") or each["params"].get("changes", {}) for each in client.notices]
        return [line["_meta"]["git"]["uncommittedChanges"] for line in lines if "_meta" in line]

    await client.wait(lambda: told() == [0, 1])
    await client.drop()
    git(folder, "commit", "-a", "-m", "second")
    assert (await client.reconnect())["type"] == "replay"
    await client.wait(lambda: client.states[SESSION]["_meta"]["git"]["uncommittedChanges"] == 0)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("# branch.head main\n", {"branchName": "main", "uncommittedChanges": 0}),
        ("# branch.oid 1\n# branch.head (detached)\n? a\n", {"isDetachedHead": True, "uncommittedChanges": 1}),
        (
            "# branch.head x\n# branch.upstream origin/x\n# branch.ab +2 -3\n1 .M N... a\n? b\n",
            {
                "branchName": "x",
                "upstreamBranchName": "origin/x",
                "outgoingChanges": 2,
                "incomingChanges": 3,
                "uncommittedChanges": 2,
            },
        ),
    ],
)
def test_what_git_says(said: str, found: Json) -> None:
    assert git_meta.parse(said) == found
