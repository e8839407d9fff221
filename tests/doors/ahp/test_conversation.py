"""A conversation over the wire, in every version: turns, approvals, questions, tools, the queue."""

import asyncio
from typing import Any

from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient

Json = dict[str, Any]


def text_of(turn: Json) -> str:
    return "".join(part.get("content", "") for part in turn["responseParts"] if part["kind"] == "markdown")


def call_of(turn: Json) -> Json:
    return next(part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall")


async def waiting_call(client: WireClient, chat: str, status: str) -> Json:
    def look() -> Json | None:
        turn = client.states[chat].get("activeTurn") or {}
        calls = [part["toolCall"] for part in turn.get("responseParts", []) if part["kind"] == "toolCall"]
        return next((call for call in calls if call["status"] == status), None)

    found: Json = await client.wait(look)
    return found


async def test_a_turn_streams(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    echo = await client.say(chat, "turn-1", "[[say:hi]] [[reasoning:1]]")
    assert "rejectionReason" not in echo
    state = await client.idle(chat)
    [turn] = state["turns"]
    assert (turn["id"], turn["state"], text_of(turn)) == ("turn-1", "complete", "hi")
    assert [part["kind"] for part in turn["responseParts"]] == ["reasoning", "markdown"]
    title = state["summary"]["title"] if client.seed else client.states["scripted:/s1"]["title"]
    assert title.startswith("[[say:hi]]")


async def test_an_approval_and_an_edited_input(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "write it")
    call = await waiting_call(client, chat, "pending-confirmation")
    assert [option["id"] for option in call["options"]] == ["allow-once", "allow-session", "deny"]
    assert call["toolInput"] == '{"path":"a.txt"}'
    echo = await client.act(
        chat,
        client.verb("toolCallConfirmed"),
        turnId="t",
        toolCallId=call["toolCallId"],
        approved=True,
        confirmed="user-action",
        editedToolInput='{"path":"b.txt"}',
        selectedOptionId="allow-once",
    )
    assert "rejectionReason" not in echo
    turn = (await client.idle(chat))["turns"][0]
    done = call_of(turn)
    assert (done["status"], done["confirmed"], done["toolInput"]) == ("completed", "user-action", '{"path":"b.txt"}')
    assert done["content"] == [{"type": "text", "text": "written"}]
    assert done["selectedOption"]["id"] == "allow-once"


async def test_a_refused_call(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "write it")
    call = await waiting_call(client, chat, "pending-confirmation")
    await client.act(
        chat,
        client.verb("toolCallConfirmed"),
        turnId="t",
        toolCallId=call["toolCallId"],
        approved=False,
        reason="denied",
        reasonMessage="not now",
    )
    done = call_of((await client.idle(chat))["turns"][0])
    assert (done["status"], done["reason"], done["reasonMessage"]) == ("cancelled", "denied", "not now")


async def test_what_an_answer_says_besides_is_kept(connect: Connect, version: str) -> None:
    """A skipped call was told as a denied one, and the suggestion was lost in the reason."""
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    suggestion = {"text": "b.txt", **({} if client.seed else {"origin": {"kind": "user"}})}
    refusal = {"reason": "skipped", "reasonMessage": {"markdown": "*no*"}, "userSuggestion": suggestion}
    for turn, answer in (
        ("t1", {"approved": False, "selectedOptionId": "deny", **refusal}),
        ("t2", {"approved": False, "selectedOptionId": "deny", "reason": "denied", "userSuggestion": suggestion}),
        ("t3", {"approved": True, "selectedOptionId": "allow-once", "confirmed": "setting"}),
    ):
        await client.say(chat, turn, "write it")
        call = await waiting_call(client, chat, "pending-confirmation")
        where = {"turnId": turn, "toolCallId": call["toolCallId"]}
        echo = await client.act(chat, client.verb("toolCallConfirmed"), **where, **answer)
        said = {key: value for key, value in echo["action"].items() if key not in ("type", "session", *where)}
        assert said == answer
        await client.idle(chat)
    calls = [call_of(turn) for turn in client.states[chat]["turns"]]
    assert {key: calls[0][key] for key in refusal} == refusal
    assert "reasonMessage" not in calls[1]
    assert calls[2]["confirmed"] == "setting"
    fresh = await connect(version, "fresh", chat)
    assert [call_of(turn) for turn in fresh.states[chat]["turns"]] == calls


async def test_a_result_that_needs_a_yes(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "result")
    call = await waiting_call(client, chat, "pending-result-confirmation")
    assert (call["content"], call["structuredContent"]) == ([{"type": "text", "text": "page"}], {"n": 1})
    await client.act(
        chat, client.verb("toolCallResultConfirmed"), turnId="t", toolCallId=call["toolCallId"], approved=True
    )
    done = call_of((await client.idle(chat))["turns"][0])
    assert done["status"] == "completed"
    fresh = await connect(version, "fresh", chat)
    assert call_of(fresh.states[chat]["turns"][0]) == done


async def test_a_question_with_drafts_of_two_clients(connect: Connect, version: str) -> None:
    one = await connect(version, "one")
    two = await connect(version, "two")
    chat = await one.create_session("scripted:/s1")
    await two.subscribe(chat)
    await one.say(chat, "t", "ask me")
    request = (await two.action(two.verb("inputRequested")))["request"]
    answer = {"state": "draft", "value": {"kind": "text", "value": "this"}}
    await one.act(chat, one.verb("inputAnswerChanged"), requestId=request["id"], questionId="which", answer=answer)
    wrong = {"state": "draft", "value": {"kind": "text", "value": "three"}}
    echo = await two.act(chat, two.verb("inputAnswerChanged"), requestId=request["id"], questionId="many", answer=wrong)
    assert "number" in echo["rejectionReason"]
    await two.act(chat, two.verb("inputCompleted"), requestId=request["id"], response="accept")
    for client in (one, two):
        turn = (await client.idle(chat))["turns"][0]
        assert text_of(turn).endswith("ok")
    assert one.states[chat] == two.states[chat] or one.seed


async def test_accepting_without_a_required_answer_is_refused(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "ask me")
    request = (await client.action(client.verb("inputRequested")))["request"]
    echo = await client.act(chat, client.verb("inputCompleted"), requestId=request["id"], response="accept")
    assert "which" in echo["rejectionReason"]
    echo = await client.act(chat, client.verb("inputCompleted"), requestId=request["id"], response="decline")
    assert "rejectionReason" not in echo
    await client.idle(chat)


async def test_cancelling(connect: Connect, version: str) -> None:
    """Cancelling with a wrong turn id once froze a chat."""
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "[[hang]]")
    wrong = await client.act(chat, client.verb("turnCancelled"), turnId="other", duration=1)
    assert "other" in wrong["rejectionReason"]
    await client.wait(lambda: text_of(client.states[chat]["activeTurn"]) == "Hello!.")
    right = await client.act(chat, client.verb("turnCancelled"), turnId="t", duration=1)
    assert "rejectionReason" not in right
    [turn] = (await client.idle(chat))["turns"]
    assert (turn["state"], text_of(turn)) == ("cancelled", "Hello!.")
    again = await client.act(chat, client.verb("turnCancelled"), turnId="t", duration=1)
    assert "rejectionReason" in again


async def test_a_second_turn_while_one_runs_is_refused(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "[[hang]]")
    echo = await client.say(chat, "u", "me too")
    assert "running" in echo["rejectionReason"]
    await client.act(chat, client.verb("turnCancelled"), turnId="t", duration=1)
    await client.idle(chat)
    assert "rejectionReason" in await client.say(chat, "t", "the same id")
    assert "rejectionReason" in await client.say(chat, "v", "   ")


async def test_a_failed_turn_keeps_its_text(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "fail please")
    [turn] = (await client.idle(chat))["turns"]
    assert (turn["state"], text_of(turn)) == ("error", "half")
    if client.dialect.since("0.9.0"):
        assert turn["responseParts"][-1]["error"]["message"] == "it broke"
    else:
        assert turn["error"]["message"] == "it broke"


async def test_a_failed_turn_is_resumed(connect: Connect) -> None:
    client, old = await connect("0.9.0"), await connect("0.7.0", "old")
    chat = await client.create_session("scripted:/s1")
    await old.subscribe(chat)
    await client.say(chat, "t", "fail please")
    await client.idle(chat)
    echo = await client.act(chat, "chat/turnResume", turnId="t")
    assert "rejectionReason" not in echo
    await client.action("chat/turnComplete")
    await old.action("chat/turnComplete")
    for each in (client, old):
        fresh = await connect(each.version, f"fresh-{each.version}", chat)
        assert without_times(each.states[chat]) == without_times(fresh.states[chat])


async def test_the_queue(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    said = {"text": "[[say:later]]", **({} if client.seed else {"origin": {"kind": "user"}})}
    field = "userMessage" if client.seed else "message"
    await client.say(chat, "t", "[[hang]]")
    for ident in ("a", "b"):
        await client.act(chat, client.verb("pendingMessageSet"), kind="queued", id=ident, **{field: said})
    await client.act(chat, client.verb("queuedMessagesReordered"), order=["b", "nonsense"])
    assert [each["id"] for each in client.states[chat]["queuedMessages"]] == ["b", "a"]
    await client.act(chat, client.verb("pendingMessageRemoved"), kind="queued", id="b")
    echo = await client.act(chat, client.verb("pendingMessageRemoved"), kind="queued", id="b")
    assert "rejectionReason" in echo
    await client.act(chat, client.verb("turnCancelled"), turnId="t", duration=1)
    await client.wait(lambda: len(client.states[chat]["turns"]) == 2)
    assert "queuedMessages" not in client.states[chat]
    assert text_of(client.states[chat]["turns"][1]) == "later"


async def test_a_queued_message_starts_an_idle_session(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    said = {"text": "[[say:now]]", **({} if client.seed else {"origin": {"kind": "user"}})}
    field = "userMessage" if client.seed else "message"
    seq = await client.dispatch(chat, client.verb("pendingMessageSet"), kind="queued", id="a", **{field: said})
    await client.wait(lambda: len(client.states[chat]["turns"]) == 1)
    assert len(client.echoes(seq)) == 1
    assert client.actions(client.verb("turnStarted"))[0]["queuedMessageId"] == "a"


async def test_steering(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    said = {"text": "left!", **({} if client.seed else {"origin": {"kind": "user"}})}
    field = "userMessage" if client.seed else "message"
    await client.say(chat, "t", "[[gap:200]]")
    echo = await client.act(chat, client.verb("pendingMessageSet"), kind="steering", id="s", **{field: said})
    assert "rejectionReason" not in echo
    await client.wait(lambda: client.actions(client.verb("pendingMessageRemoved")))
    assert "steeringMessage" not in client.states[chat]
    assert "Steered: left!" in text_of((await client.idle(chat))["turns"][0])


async def test_a_tool_of_the_client(connect: Connect, version: str) -> None:
    client, other = await connect(version, "owner"), await connect(version, "other")
    chat = await client.create_session("scripted:/s1")
    await other.subscribe(chat)
    me = {"clientId": "owner", "tools": [{"name": "pick", "inputSchema": {"type": "object"}}]}
    if client.seed:
        echo = await client.act(chat, "session/activeClientChanged", activeClient=me)
    else:
        echo = await client.act("scripted:/s1", "session/activeClientSet", activeClient=me)
    assert "rejectionReason" not in echo
    await client.say(chat, "t", "client tool")
    call = await waiting_call(client, chat, "running")
    owner = call["toolClientId"] if client.seed else call["contributor"]["clientId"]
    assert owner == "owner"
    assert "".join(each["content"] for each in client.actions(client.verb("toolCallDelta"))) == call["toolInput"]
    result = {"success": True, "pastTenseMessage": "Picked", "content": [{"type": "text", "text": "one"}]}
    where = {"turnId": "t", "toolCallId": call["toolCallId"]}
    stolen = await other.act(chat, other.verb("toolCallComplete"), **where, result=result)
    assert "does not belong" in stolen["rejectionReason"]
    await client.act(chat, client.verb("toolCallContentChanged"), **where, content=[{"type": "text", "text": "o"}])
    seq = await client.dispatch(chat, client.verb("toolCallComplete"), **where, result=result)
    done = call_of((await client.idle(chat))["turns"][0])
    assert (done["status"], done["pastTenseMessage"], done["content"]) == ("completed", "Picked", result["content"])
    assert len(client.echoes(seq)) == 1


async def test_a_clients_result_is_told_as_it_was_said(connect: Connect, version: str) -> None:
    """Markdown became plain text, structured content was told as text, too, and unknown content was dropped."""
    client = await connect(version, "owner")
    chat = await client.create_session("scripted:/s1", activeClient={"clientId": "owner", "tools": [{"name": "pick"}]})
    text = {"type": "text", "text": "one"}
    results: list[Json] = [
        {"success": True, "pastTenseMessage": {"markdown": "**Picked**"}, "content": [text]},
        {"success": True, "pastTenseMessage": "Picked", "structuredContent": {"n": 1}},
        {"success": False, "pastTenseMessage": "Failed", "error": {"message": "no"}},
        {"success": True, "pastTenseMessage": "Picked", "content": [text, text]},
    ]
    for number, result in enumerate(results):
        await client.say(chat, f"t{number}", "client tool")
        call = await waiting_call(client, chat, "running")
        where = {"turnId": f"t{number}", "toolCallId": call["toolCallId"]}
        echo = await client.act(chat, client.verb("toolCallComplete"), **where, result=result)
        assert echo["action"]["result"] == result
        await client.idle(chat)
    fresh = await connect(version, "fresh", chat)
    assert fresh.states[chat]["turns"] == client.states[chat]["turns"]


async def test_a_client_wants_a_yes_for_its_result(connect: Connect, version: str) -> None:
    """The flag was dropped, and the agent had the result at once."""
    client, other = await connect(version, "owner"), await connect(version, "other")
    me = {"clientId": "owner", "tools": [{"name": "pick"}]}
    chat = await client.create_session("scripted:/s1", activeClient=me)
    await other.subscribe(chat)
    past = {"markdown": "**Picked**"}
    result = {"success": True, "pastTenseMessage": past, "content": [{"type": "text", "text": "one"}]}
    proposal = {"result": result, "requiresResultConfirmation": True}
    for turn, approved, status in (("t1", True, "completed"), ("t2", False, "cancelled")):
        await client.say(chat, turn, "client tool")
        where = {"turnId": turn, "toolCallId": (await waiting_call(client, chat, "running"))["toolCallId"]}
        echo = await client.act(chat, client.verb("toolCallComplete"), **where, **proposal)
        assert {key: echo["action"][key] for key in proposal} == proposal
        waiting = await waiting_call(other, chat, "pending-result-confirmation")
        assert (waiting["pastTenseMessage"], waiting["content"]) == (past, result["content"])
        again = await client.act(chat, client.verb("toolCallComplete"), **where, result=result)
        assert "rejectionReason" in again
        await other.act(chat, other.verb("toolCallResultConfirmed"), **where, approved=approved)
        assert call_of((await client.idle(chat))["turns"][-1])["status"] == status
        assert len(client.echoes(client.client_seq - 1)) == 1
    fresh = await connect(version, "fresh", chat)
    assert fresh.states[chat]["turns"] == client.states[chat]["turns"]


async def test_a_rejection_is_for_its_sender_alone(connect: Connect, version: str) -> None:
    one, two = await connect(version, "one"), await connect(version, "two")
    chat = await one.create_session("scripted:/s1")
    await two.subscribe(chat)
    before = len(two.envelopes)
    echo = await one.act(chat, one.verb("delta"), turnId="t", partId="p", content="forged")
    assert "not for clients" in echo["rejectionReason"]
    await one.say(chat, "t", "[[say:x]]")
    await two.idle(chat)
    heard = [each for each in two.envelopes[before:] if "rejectionReason" in each]
    assert heard == []
    assert text_of(two.states[chat]["turns"][0]) == "x"


async def test_echoes_come_in_the_order_of_dispatch(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    await client.create_session("scripted:/s1")
    seqs = []
    for index in range(60):
        kind = ["session/titleChanged", "session/isArchivedChanged", "session/nonsense", "session/isReadChanged"]
        fields: list[Json] = [{"title": f"title {index}"}, {"isArchived": True}, {}, {"isRead": index % 8 == 3}]
        seqs.append(await client.dispatch("scripted:/s1", kind[index % 4], **fields[index % 4]))
    await client.echo(seqs[-1])
    order = [each["origin"]["clientSeq"] for each in client.envelopes if "origin" in each]
    assert order == seqs


async def test_a_sub_agent_is_a_chat_of_its_own(connect: Connect) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "child please")
    done = call_of((await client.idle(chat))["turns"][0])
    [content] = [each for each in done["content"] if each["type"] == "subagent"]
    chats = client.states["scripted:/s1"]["chats"]
    assert [each["resource"] for each in chats] == [chat, content["resource"]]
    assert chats[1]["origin"] == {"kind": "tool", "chat": chat, "toolCallId": done["toolCallId"]}
    await client.subscribe(content["resource"])
    assert text_of(client.states[content["resource"]]["turns"][0]) == "found"
    refused = await client.say(content["resource"], "t2", "and me?")
    assert "is a sub-agent" in refused["rejectionReason"]
    listed = await client.request("listSessions", channel="ahp-root://")
    assert len(listed["items"]) == 1


async def test_usage_title_and_notices(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "usage")
    turn = (await client.idle(chat))["turns"][0]
    assert (turn["usage"]["inputTokens"], turn["usage"]["outputTokens"]) == (3, 4)
    fresh = await connect(version, "fresh", chat)
    assert without_times(fresh.states[chat]) == without_times(client.states[chat])
    if not client.seed:
        assert {"kind": "systemNotification", "content": {"markdown": "Careful"}} in turn["responseParts"]
        assert client.states["scripted:/s1"]["title"] == "A title"


def without_times(state: Json) -> Json:
    """`modifiedAt` is the reader's own clock up to 0.8, and a chat's title is only in its session's list."""
    copy = {key: value for key, value in state.items() if key not in ("modifiedAt", "title")}
    if "summary" in copy:
        copy["summary"] = {key: value for key, value in copy["summary"].items() if key != "modifiedAt"}
    return copy


async def test_a_client_that_vanishes_takes_its_tools_along(connect: Connect, served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr("portico.doors.ahp.act.clients.GRACE_SECONDS", 0.05)
    watcher, client = await connect("0.9.0", "watcher"), await connect("0.9.0", "owner")
    chat = await client.create_session("scripted:/s1")
    await watcher.subscribe(chat)
    await watcher.subscribe("scripted:/s1")
    me = {"clientId": "owner", "tools": [{"name": "pick"}]}
    await client.act("scripted:/s1", "session/activeClientSet", activeClient=me)
    await client.say(chat, "t", "client tool")
    await waiting_call(watcher, chat, "running")
    await client.drop()
    await watcher.wait(lambda: watcher.states["scripted:/s1"]["activeClients"] == [])
    done = call_of((await watcher.idle(chat))["turns"][0])
    assert (done["status"], done["success"], done["error"]["code"]) == ("completed", False, "client_gone")


async def test_dispatching_before_subscribing(connect: Connect) -> None:
    """Editors set their tools, and start a turn, before they have subscribed."""
    client = await connect("0.9.0")
    await client.request("createSession", channel="scripted:/s1")
    from portico.doors.ahp.wire import uri

    chat = uri.default_chat("scripted:/s1")
    first, seq = await client.start_request("subscribe", channel=chat), None
    seq = await client.dispatch(
        chat, "chat/turnStarted", turnId="t", message={"text": "[[say:quick]]", "origin": {"kind": "user"}}
    )
    assert "error" not in await first
    await client.echo(seq)
    await client.action("chat/turnComplete")
    await asyncio.sleep(0)


async def test_steering_that_comes_too_late_is_not_refused(connect: Connect) -> None:
    """The message was echoed, became a turn at once, and was then refused because it had left the queue."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    said = {"text": "[[say:late]]", "origin": {"kind": "user"}}
    for index in range(5):
        await client.dispatch(chat, "chat/turnStarted", turnId=f"t{index}", message=said)
        seq = await client.dispatch(chat, "chat/pendingMessageSet", kind="steering", id=f"s{index}", message=said)
        await client.echo(seq)
        await client.idle(chat)
        await client.request("listSessions")
        assert [each.get("rejectionReason") for each in client.echoes(seq)] == [None]
        await client.idle(chat)
