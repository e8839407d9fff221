"""The walk of docs/guide/editors.md, as VS Code would send it: each step gives what a person is told to see."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from portico.doors.ahp.wire import uri
from tests.doors.ahp.test_changesets import git
from tests.doors.ahp.test_story import Editor
from tests.doors.ahp.wire_client import Json
from tests.process import HostProcess

GUIDE = (Path(__file__).parents[3] / "docs/guide/editors.md").read_text().partition("## A walk through it")[2]
SESSION = "scripted:/s1"


def typed(word: str) -> str:
    """The prompt of the guide that begins with this word."""
    prompts: list[str] = re.findall(r"`([^`\n]+)`", GUIDE)
    return next(each for each in prompts if each.startswith(word))


@pytest.fixture
def serve(tmp_path: Path) -> Callable[[], HostProcess]:
    work = tmp_path / "walk"
    work.mkdir()
    git(work, "init")
    git(work, "commit", "--allow-empty", "-m", "first")
    script = tmp_path / "walk.yaml"
    script.write_text(GUIDE.partition("```yaml\n")[2].partition("```")[0])
    given = ["--script", str(script), "--agent", "scripted", "--workspace", str(work)]
    return partial(HostProcess, tmp_path / "home", *given, SHELL="/bin/bash", HOME=str(tmp_path))


def address(host: HostProcess) -> str:
    return f"ws://127.0.0.1:{host.port}/?tkn={(host.home / 'token').read_text().strip()}"


async def test_what_a_person_is_told_to_do(serve: Callable[[], HostProcess]) -> None:
    with serve() as host:
        editor = Editor(address(host), "0.9.0")
        client, chat = editor.client, editor.chat
        await client.open()
        await client.initialize(client.root)
        await client.create_session(SESSION, provider="scripted")
        assert await editor.listed() == []
        await editor.turn("t1", typed("hello"))
        assert [each["title"] for each in await editor.listed()] == ["hello"]
        await _cards(editor)
        [call] = editor.calls(await editor.turn("t5", typed("delegate")))
        worker = next(each["resource"] for each in call["content"] if each["type"] == "subagent")
        await client.subscribe(worker)
        assert (client.states[worker]["title"], client.states[worker]["interactivity"]) == ("Counter", "read-only")
        [call] = editor.calls(await editor.turn("t6", typed("!echo")))
        assert "42" in call["content"][0]["text"]
        for text, found in ((typed("@no"), "notes.md"), (typed("/re"), "/review ")):
            offered = await client.request(
                "completions", channel=SESSION, kind="userMessage", text=text, offset=len(text)
            )
            assert found in offered["items"][0]["insertText"]
        fork: Json = {"kind": "fork", "chat": chat, "turnId": "t1"}
        await client.request("createChat", channel=SESSION, chat=uri.chat(SESSION, "fork"), source=fork)
        await client.say(chat, "t7", typed("hold"))
        await client.wait(lambda: "first half" in str(client.states[chat]["activeTurn"]))
        host.kill()
    with serve() as host:
        client.url = address(host)
        await client.reconnect()
        cut = client.states[chat]["turns"][-1]["responseParts"]
        assert (cut[0]["content"], cut[-1]["resumable"]) == ("The first half. ", True)
        await client.act(chat, "chat/turnResume", turnId="t7")
        assert (await client.idle(chat))["turns"][-1]["responseParts"][: len(cut)] == cut
        await client.close()


async def _cards(editor: Editor) -> None:
    client, chat = editor.client, editor.chat
    [call] = editor.calls(await editor.turn("t2", typed("run touch"), answer=True))
    assert (call["toolInput"], call["_meta"]["toolKind"]) == ("touch a <!-- b -->", "terminal")
    assert call["content"][0]["text"] == "it ran\n"
    [call] = editor.calls(await editor.turn("t3", typed("run rm"), answer=False))
    assert (call["status"], call["reason"]) == ("cancelled", "denied")
    await client.say(chat, "stop", typed("run make"))
    await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    assert "riskAssessment" in client.actions("chat/toolCallReady")[-1]
    await client.act(chat, "chat/turnCancelled", turnId="stop")
    await client.idle(chat)
    [call] = editor.calls(await editor.turn("t4", typed("edit"), answer=True))
    edit = next(each for each in call["content"] if each["type"] == "fileEdit")
    assert edit["after"]["content"]["uri"].endswith("/notes.md")
    assert edit["diff"] == {"added": 1, "removed": 0}
