"""What a waiting call would do to a file, and what a finished one has done: previews and structured results."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from portico.doors.ahp.view import content, parts
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.state import CallPart
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Refused, WireClient

CHAT = "ahp-chat://default/czovMQ"


async def begin(client: WireClient, text: str, **more: Any) -> str:
    name = "s:/1"
    await client.request("createSession", **{"session" if client.seed else "channel": name}, **more)
    chat = name if client.seed else CHAT
    await client.subscribe(chat)
    prefix, field = ("session", "userMessage") if client.seed else ("chat", "message")
    await client.dispatch(chat, f"{prefix}/turnStarted", turnId="t-1", **{field: {"text": text}})
    return chat


async def test_an_edit_is_previewed_before_it_is_confirmed(served: Served, connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    (served.work / "notes.txt").write_text("one\ntwo\n")
    chat = await begin(client, "edit notes.txt")
    prefix = "session" if client.seed else "chat"
    ready = await client.action(f"{prefix}/toolCallReady")
    [edit] = ready["edits"]["items"]
    name = (served.work / "notes.txt").as_uri()
    assert edit["diff"] == {"added": 1, "removed": 0}
    assert (edit["before"]["uri"], edit["after"]["uri"]) == (name, name)
    root = {} if client.seed else {"channel": client.root}
    read = [
        await client.request("resourceRead", **root, uri=edit[side]["content"]["uri"]) for side in ("before", "after")
    ]
    assert [each["data"] for each in read] == ["one\ntwo\n", "one\ntwo\nthree\n"]
    paths = {urlsplit(edit[side]["content"]["uri"]).path for side in ("before", "after")}
    assert paths == {str(served.work / "notes.txt")}
    which = {"turnId": "t-1", "toolCallId": ready["toolCallId"]}
    await client.dispatch(chat, f"{prefix}/toolCallConfirmed", **which, approved=True, confirmed="user-action")
    await client.action(f"{prefix}/turnComplete")
    with pytest.raises(Refused) as refused:
        await client.request("resourceRead", **root, uri=edit["after"]["content"]["uri"])
    assert refused.value.code == -32008


async def test_a_file_that_is_not_there_yet_has_one_side(served: Served, connect: Connect, version: str) -> None:
    """The card said "Write file?" and showed an empty file beside the new one."""
    client: WireClient = await connect(version)
    await begin(client, "edit new.txt")
    ready = await client.action(client.verb("toolCallReady"))
    [edit] = ready["edits"]["items"]
    assert ready["confirmationTitle"] == "Create file?"
    assert {*edit} == {"after", "diff"}
    root = {} if client.seed else {"channel": client.root}
    assert (await client.request("resourceRead", **root, uri=edit["after"]["content"]["uri"]))["data"] == "three\n"


@pytest.mark.parametrize("existed", [True, False])
async def test_both_sides_of_an_edit_can_be_read_afterwards(
    served: Served, connect: Connect, version: str, existed: bool
) -> None:
    client: WireClient = await connect(version)
    if existed:
        (served.work / "notes.txt").write_text("one\n")
    chat = await begin(client, "edit notes.txt", config={"approvals": "allow"})
    prefix = "session" if client.seed else "chat"
    await client.action(f"{prefix}/turnComplete")
    [turn] = client.states[chat]["turns"]
    content = turn["responseParts"][0]["toolCall"]["content"]
    [edit] = [each for each in content if each["type"] == "fileEdit"]
    assert edit["diff"] == {"added": 1, "removed": 0}
    (served.work / "notes.txt").write_text("meanwhile\n")
    root = {} if client.seed else {"channel": client.root}
    sides = {"before": "one\n", "after": "one\nthree\n"} if existed else {"after": "three\n"}
    assert {*edit} - {"type", "diff"} == {*sides}
    for side, text in sides.items():
        name = edit[side]["content"]["uri"]
        assert urlsplit(name).path == str(served.work / "notes.txt"), (
            "the same on both sides, or it looks like a rename"
        )
        assert (await client.request("resourceRead", **root, uri=name))["data"] == text
    for wrong in (
        f"portico-diff:/nosuch/c/0/after{served.work}",
        f"portico-diff://{b's/c/0/x'.hex()}/a",
        "portico-diff://nohex/a",
        "portico-diff://",
    ):
        with pytest.raises(Refused) as refused:
            await client.request("resourceRead", **root, uri=wrong)
        assert refused.value.code in (-32001, -32008)


async def test_structured_results_of_agents_and_clients(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    tools = [{"name": "pick", "inputSchema": {"type": "object"}}]
    chat = await begin(client, "client", activeClient={"clientId": "tester", "tools": tools})
    prefix = "session" if client.seed else "chat"
    ready = await client.action(f"{prefix}/toolCallReady")
    which = {"turnId": "t-1", "toolCallId": ready["toolCallId"]}
    result = {"success": True, "pastTenseMessage": "Picked", "structuredContent": {"picked": [1, 2]}}
    echo = await client.act(chat, f"{prefix}/toolCallComplete", **which, result=result)
    assert echo["action"]["result"]["structuredContent"] == {"picked": [1, 2]}
    await client.action(f"{prefix}/turnComplete")
    [turn] = client.states[chat]["turns"]
    assert turn["responseParts"][0]["toolCall"]["structuredContent"] == {"picked": [1, 2]}


async def test_the_input_of_a_call_is_streamed(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await begin(client, "stream")
    prefix = "session" if client.seed else "chat"
    await client.action(f"{prefix}/turnComplete")
    pieces = [each["content"] for each in client.actions(f"{prefix}/toolCallDelta")]
    [turn] = client.states[chat]["turns"]
    call = turn["responseParts"][0]["toolCall"]
    assert ("".join(pieces), call["toolInput"]) == ('{"where":"here"}', '{"where":"here"}')
    assert (call["status"], call["structuredContent"]) == ("completed", {"n": 1})


@pytest.mark.parametrize("long", [False, True])
def test_what_a_terminal_showed_stays_with_its_call(long: bool) -> None:
    """The terminal is gone when its agent is done with it: whoever came later saw none of it there."""
    output = "x" * (2_000 if long else 10)
    ran: list[Any] = [{"type": "terminal", "terminal": "t-1", "title": "make", "code": 2}]
    blob = "b1" if long else None
    call = CallPart("c1", "terminal", ready=True, done=True, ok=True, content=ran, output=output, blob=blob)
    [terminal] = [each for each in content.content_of(call) if each["type"] == "terminal"]
    assert terminal["result"] == {"exitCode": 2, "preview": output[:1_000], "truncated": long}
    whole = {"type": "resource", "uri": "portico-blob:/b1", "contentType": "text/plain"}
    assert (whole in content.content_of(call)) is long
    assert "result" not in ran[0]


def test_what_agents_report_becomes_the_protocols_content() -> None:
    reported: list[Any] = [
        {"type": "diff", "path": "/p/a.py", "old": "a\nb\n", "new": "a\nc\nd\n"},
        {"type": "diff", "path": "a.py", "old": None, "new": "x"},
        {"type": "terminal", "terminal": "t-1"},
        {"type": "structured", "value": {"n": 1}},
    ]
    call = CallPart("c1", "edit", ready=True, done=True, ok=True, content=reported, outcome="completed")
    shown = parts.call(call, Dialect("0.9.0", lambda: 0))
    name = "file:///p/a.py"
    assert shown["content"] == [
        {
            "type": "fileEdit",
            "after": {"uri": name, "content": {"uri": name}},
            "diff": {"added": 2, "removed": 1},
        },
        {"type": "terminal", "resource": "ahp-terminal:/t-1", "title": "Terminal", "isPty": True},
    ]
    assert shown["structuredContent"] == {"n": 1}
