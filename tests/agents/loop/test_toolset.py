"""The tools beside files and commands: plans, questions, pictures, web pages, background commands, sub-agents."""

import asyncio
import base64
import json
import re
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from portico.agents.loop.looking_commands import only_looks
from portico.agents.loop.page_text import page_text
from portico.agents.loop.protocol import FINISH_TOOL
from portico.agents.loop.settings import TOOL_NAMES
from portico.agents.loop.tools import TOOLS
from portico.agents.loop.toolset.choice import EXTRAS, NAMES, choose
from portico.markdown import checklist, checklist_steps
from portico.testing.model import ModelRule, Script, ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls, questions, texts

BASIC = [tool.name for tool in TOOLS]


def asks(name: str, **arguments: Any) -> Step:
    return Step(calls=[ScriptedCall(name=name, args=arguments)])


@pytest.fixture
def native(desk: Desk) -> Desk:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    return desk


def heard(desk: Desk, request: int = -1) -> str:
    return json.dumps(desk.server.requests[request].body["messages"])


# -- which tools are offered -----------------------------------------------------------------------------------


def test_all_declarations_together_take_at_most_12_kilobytes() -> None:
    specs = [*TOOLS, *(each.spec for each in EXTRAS.values()), FINISH_TOOL]
    assert len(msgspec.json.encode(specs)) <= 12 * 1024


@pytest.mark.parametrize(
    ("choice", "off", "small", "offered"),
    [
        ("auto", [], False, list(NAMES)),
        ("auto", [], True, BASIC),
        ("all", [], True, list(NAMES)),
        ("basic", [], False, BASIC),
        ("auto", ["webFetch", "runCommand"], False, [each for each in NAMES if each not in ("webFetch", "runCommand")]),
    ],
)
def test_a_setting_and_the_size_of_the_model_choose(
    choice: Any, off: list[str], small: bool, offered: list[str]
) -> None:
    assert choose(choice, off, small) == offered


def test_the_settings_know_every_tool() -> None:
    assert TOOL_NAMES == NAMES


@pytest.mark.parametrize(("model", "all_of_them"), [("alpha", True), ("qwen2.5-coder:1.5b", False)])
async def test_a_small_model_gets_the_basic_tools(native: Desk, model: str, all_of_them: bool) -> None:
    native.server.script = Script(models=[model], rules=[ModelRule(steps=[Step(say="Done.")])])
    native.host.agents["loop"].forget()  # type: ignore[attr-defined]
    native.session = await native.host.start(by="test", agent="loop", cwd=str(native.project), model=model)
    await native.run()
    offered = [tool["function"]["name"] for tool in native.server.requests[-1].body["tools"]]
    assert ("delegate" in offered, "readFiles" in offered) == (all_of_them, True)


async def test_a_tool_that_is_off_is_not_offered_and_not_run(native: Desk) -> None:
    native.settings('[agents.loop]\nprotocol = "tools"\ntools_off = ["runCommand"]\n')
    native.says(asks("runCommand", command="touch x"), Step(say="Done."))
    turn = await native.run()
    assert [call.ok for call in calls(turn)] == [False]
    assert "There is no tool 'runCommand'" in heard(native)
    assert not (native.project / "x").exists()


async def test_a_wrong_name_in_tools_off_is_reported(desk: Desk) -> None:
    desk.settings('[agents.loop]\ntools_off = ["fetch"]\n')
    await desk.open()
    info = await desk.host.agents["loop"].describe()
    assert "tools_off names no tool: fetch. There are: listFiles" in (info.missing or "")


# -- plans and questions ---------------------------------------------------------------------------------------


async def test_a_plan_is_a_checklist_and_asks_nobody(native: Desk) -> None:
    native.settings('[agent]\nrequire_approval = "all"\n[agents.loop]\nprotocol = "tools"\n')
    steps = [{"text": "Look", "status": "completed"}, {"text": "Change", "status": "in_progress"}, {"text": "Test"}]
    native.says(asks("plan", steps=steps), Step(say="Done."))
    turn = await native.run(allow=None)
    [call] = calls(turn)
    assert (call.tool, call.kind, call.title, call.ok) == ("plan", "think", "Plan: 1 of 3 done", True)
    assert call.content == [{"type": "text", "text": "- [x] Look\n- [~] Change\n- [ ] Test"}]
    assert not call.approvals


def test_a_plan_is_read_back_as_it_was_written() -> None:
    steps = [("Look [x] here", "completed"), ("two\nlines", "pending"), ("Test", "in_progress")]
    assert checklist_steps(checklist(steps)) == [(text.replace("\n", " "), status) for text, status in steps]


@pytest.mark.parametrize(("choices", "answer"), [([], "Blue, please"), (["red", "blue"], "blue")])
async def test_a_question_goes_to_the_person_and_the_answer_to_the_model(
    native: Desk, choices: list[str], answer: str
) -> None:
    native.says(asks("askUser", question="Which colour?", choices=choices), Step(say="Done."))
    turn = await native.run(answer=answer)
    [question] = questions(turn)
    assert question.text == "Which colour?"
    assert [option["label"] for field in question.fields for option in field["options"]] == choices
    assert f"The person answered: {answer}" in heard(native)


# -- pictures --------------------------------------------------------------------------------------------------


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


async def test_the_model_sees_a_picture_of_the_folder(native: Desk) -> None:
    (native.project / "shot.txt").write_bytes(png())
    native.says(asks("viewImage", path="shot.txt"), Step(say="Red."))
    turn = await native.run()
    assert turn.outcome == "completed", turn.error
    content = native.server.requests[-1].body["messages"][-1]["content"]
    assert content[-1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(png()).decode()}"


@pytest.mark.parametrize(
    ("path", "reason"), [("a.txt", "is no PNG"), ("none.png", "There is no"), ("../secret.png", "outside|not inside")]
)
async def test_what_is_no_picture_of_the_folder_is_refused(native: Desk, path: str, reason: str) -> None:
    (native.project / "a.txt").write_text("text")
    (native.project.parent / "secret.png").write_bytes(png())
    native.says(asks("viewImage", path=path), Step(say="Done."))
    turn = await native.run()
    assert [call.ok for call in calls(turn)] == [False]
    assert re.search(reason, calls(turn)[0].output), calls(turn)[0].output
    assert "image_url" not in heard(native)


# -- web pages -------------------------------------------------------------------------------------------------

Serve = Callable[[dict[str, tuple[int, dict[str, str], bytes]]], Awaitable[str]]


@pytest.fixture
async def website() -> AsyncIterator[Serve]:
    servers: list[asyncio.Server] = []

    async def serve(pages: dict[str, tuple[int, dict[str, str], bytes]]) -> str:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            status, headers, body = pages.get(line, (404, {}, b"nothing here"))
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"HTTP/1.1 {status} X\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield serve
    for server in servers:
        server.close()


HTML = {"Content-Type": "text/html; charset=utf-8"}


async def test_a_page_is_fetched_as_text_after_a_person_said_yes(native: Desk, website: Serve) -> None:
    page = b"<html><head><title>T\xc3\xa4st</title><script>evil()</script></head><body><h2>Use</h2><p>Call <b>x</b></p>"
    url = await website({"/a": (302, {"Location": "/b"}, b""), "/b": (200, HTML, page)})
    native.says(asks("webFetch", url=f"{url}/a"), Step(say="Done."))
    turn = await native.run()
    [call] = calls(turn)
    assert (call.kind, call.output) == ("fetch", "# Täst\n\n## Use\n\nCall x")
    assert call.approvals[0].title == f"Fetch {url}/a"


async def test_a_refused_page_is_not_fetched(native: Desk, website: Serve) -> None:
    url = await website({"/": (200, HTML, b"secret page")})
    native.says(asks("webFetch", url=url), Step(say="Done."))
    await native.run(allow=False)
    assert "secret page" not in heard(native)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/away", "redirected to another host: fetch http://other.example/x"),
        ("/loop", "redirects more than 5 times"),
        ("/missing", "answers 404.\nnothing here"),
        ("/binary", "is image/png, not a text"),
        ("/json", '{"a": 1}'),
    ],
)
async def test_other_answers_of_a_page(native: Desk, website: Serve, path: str, expected: str) -> None:
    url = await website(
        {
            "/away": (301, {"Location": "http://other.example/x"}, b""),
            "/loop": (302, {"Location": "/loop"}, b""),
            "/binary": (200, {"Content-Type": "image/png"}, png()),
            "/json": (200, {"Content-Type": "application/json"}, b'{"a": 1}'),
        }
    )
    native.says(asks("webFetch", url=url + path), Step(say="Done."))
    turn = await native.run()
    assert expected in calls(turn)[0].output


async def test_an_earlier_approval_does_not_cover_an_address_of_this_network(native: Desk, website: Serve) -> None:
    url = await website({"/1": (200, HTML, b"one"), "/2": (200, HTML, b"two")})
    native.says(asks("webFetch", url=f"{url}/1"), asks("webFetch", url=f"{url}/2"), Step(say="Done."))
    turn = await native.run()
    assert [len(call.approvals) for call in calls(turn)] == [1, 1]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "http://me:pw@x/", "nonsense", ""])
async def test_only_web_addresses_are_fetched(native: Desk, url: str) -> None:
    native.says(asks("webFetch", url=url), Step(say="Done."))
    turn = await native.run()
    assert "'url' is an http or https address" in calls(turn)[0].output


def test_a_page_becomes_text() -> None:
    html = "<body><h1>A</h1><ul><li>one<li><a href='/x'>two</a></ul><pre>a\n  b</pre><style>p{}</style><p>x &amp; y</p>"
    assert page_text(html) == "# A\n\n- one\n- [two](/x)\n\n```\na\n  b\n```\n\nx & y"


# -- background commands ---------------------------------------------------------------------------------------


async def test_a_command_goes_on_while_the_agent_works_and_is_stopped(native: Desk) -> None:
    native.says(
        asks("startCommand", command="echo ready; exec sleep 600"),
        asks("commandOutput", id="cmd1"),
        asks("stopCommand", id="cmd1"),
        Step(say="Done."),
    )
    start, output, stop = calls(await native.run())
    assert start.output == "Started as 'cmd1'.\nready\n[still running]"
    assert start.approvals[0].command == "echo ready; exec sleep 600"
    assert start.exit_code is None
    assert [each["type"] for each in start.content] == ["terminal"]
    assert output.output == "ready\n[still running]"
    assert stop.output.startswith("ready\n[ended by signal")


async def test_a_command_outlives_its_turn(native: Desk) -> None:
    native.says(asks("startCommand", command="exec sleep 600"), Step(say="Started."))
    await native.run()
    native.says(asks("commandOutput", id="cmd1"), Step(say="Done."))
    turn = await native.run("agent: look")
    assert calls(turn)[0].output == "[still running]"


async def test_a_command_that_fails_at_once_is_reported_by_its_start(native: Desk) -> None:
    native.says(asks("startCommand", command="exit 3"), asks("commandOutput", id="nope"), Step(say="Done."))
    turn = await native.run()
    assert "[exit code 3]" in calls(turn)[0].output
    assert "There is no command 'nope'. There are: cmd1." in calls(turn)[1].output


# -- sub-agents ------------------------------------------------------------------------------------------------


def delegates(*tasks: dict[str, Any]) -> Step:
    return Step(calls=[ScriptedCall(name="delegate", args=task) for task in tasks])


async def test_a_sub_agent_works_in_a_child_session_and_reports(native: Desk) -> None:
    (native.project / "a.py").write_text("def needle(): ...\n")
    native.server.script = Script(
        models=["alpha"],
        rules=[
            ModelRule(match="Find the needle", steps=[asks("search", pattern="needle"), Step(say="In a.py, line 1.")]),
            ModelRule(steps=[delegates({"task": "Find the needle.", "title": "Needle"}), Step(say="Found.")]),
        ],
    )
    turn = await native.run()
    [call] = calls(turn)
    assert (call.ok, call.output, call.approvals) == (True, "In a.py, line 1.", [])
    child = native.host.find(call.content[0]["session"])
    assert child is not None
    [done] = child.state.turns
    assert (done.outcome, [each.tool for each in calls(done)]) == ("completed", ["search"])
    bodies = [each.body for each in native.server.requests]
    offered = [{tool["function"]["name"] for tool in body["tools"]} for body in bodies]
    assert offered[1] == {"listFiles", "readFiles", "search", "viewImage", "finish"}
    assert len(bodies[1]["messages"]) == 2  # an empty conversation: the system message and the task


async def test_sub_agents_that_only_look_work_at_the_same_time(native: Desk) -> None:
    native.server.script = Script(
        models=["alpha"],
        rules=[
            ModelRule(match="Task (one|two)", steps=[Step(say="Report.", delay=300)]),
            ModelRule(steps=[delegates({"task": "Task one"}, {"task": "Task two"}), Step(say="Both.")]),
        ],
    )
    turn = await native.run()
    first, second = calls(turn)
    assert (first.output, second.output) == ("Report.", "Report.")
    turns = [
        child.state.turns[0] for call in (first, second) if (child := native.host.find(call.content[0]["session"]))
    ]
    assert turns[1].started < (turns[0].ended or 0)


async def test_a_sub_agent_that_fails_is_an_error_of_the_call(native: Desk) -> None:
    native.server.script = Script(
        models=["alpha"],
        rules=[
            ModelRule(match="Do it", steps=[Step(error=400)]),
            ModelRule(steps=[delegates({"task": "Do it"}), Step(say="It failed.")]),
        ],
    )
    turn = await native.run()
    assert turn.outcome == "completed"
    [call] = calls(turn)
    assert not call.ok
    assert "No model answered" in call.output
    child = native.host.find(call.content[0]["session"])
    assert child is not None
    assert [each.outcome for each in child.state.turns] == ["failed"]


async def test_a_sub_agent_starts_no_others_and_asks_before_it_writes(native: Desk) -> None:
    native.settings('[agent]\nrequire_approval = "none"\n[agents.loop]\nprotocol = "tools"\n')
    work = [asks("delegate", task="more"), asks("createFile", path="made.txt", content="x"), Step(say="Made.")]
    native.server.script = Script(
        models=["alpha"],
        rules=[
            ModelRule(match="Make a file", steps=work),
            ModelRule(steps=[delegates({"task": "Make a file", "readOnly": False}), Step(say="Done.")]),
        ],
    )
    turn = await native.run()
    assert calls(turn)[0].output == "Made."
    assert (native.project / "made.txt").read_text() == "x"
    child = native.host.find(calls(turn)[0].content[0]["session"])
    assert child is not None
    assert [(each.tool, each.ok) for each in calls(child.state.turns[0])] == [("delegate", False), ("createFile", True)]


# -- calls at the same time ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("ls -la src", True),
        ("git log --oneline -5", True),
        ("grep -rn foo src | head -5", True),
        (["cat", "a.txt"], True),
        ("cat a.txt > b.txt", False),
        ("git diff --output=x", False),
        ("git commit -m x", False),
        ("sort -o x x", False),
        ("ls; rm x", False),
        ("echo $(rm x)", False),
        ("make test", False),
        ("", False),
        (None, False),
        ([1, 2], False),
    ],
)
def test_commands_that_only_look(line: Any, looks: bool) -> None:
    assert only_looks(line) is looks


async def test_changes_run_in_their_order_between_reads(native: Desk) -> None:
    reply = [
        ScriptedCall(name="createFile", args={"path": "a.txt", "content": "one"}),
        ScriptedCall(name="runCommand", args={"command": "cat a.txt"}),
        ScriptedCall(name="readFiles", args={"files": ["a.txt"]}),
        ScriptedCall(name="editFile", args={"path": "a.txt", "content": "two"}),
        ScriptedCall(name="runCommand", args={"command": "cat a.txt"}),
    ]
    native.says(Step(calls=reply), Step(say="Done."))
    turn = await native.run()
    assert ["one" in calls(turn)[1].output, "one" in calls(turn)[2].output, "two" in calls(turn)[4].output] == [
        True
    ] * 3
    assert texts(turn) == "Done."
