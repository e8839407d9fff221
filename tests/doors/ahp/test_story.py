"""One story, walked in version 1 and in every version from 0.5.1 to 1.0, against a real host that is killed on the way:
create, prompt, approve, deny, sub-agent, fork, rename, diff, terminal, kill, reconnect."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.versions import SEED, SUPPORTED
from tests.doors.ahp.conftest import SCRIPT
from tests.doors.ahp.test_changesets import git
from tests.doors.ahp.wire_client import Json, WireClient
from tests.process import HostProcess

SESSION = "scripted:/s1"


class Editor:
    """A client that sees the story through one version's words."""

    def __init__(self, url: str, version: str) -> None:
        self.client = WireClient(url, "editor", version)
        self.seed = self.client.seed
        self.chat = SESSION if self.seed else uri.default_chat(SESSION)

    @property
    def root(self) -> Json:
        return {} if self.seed else {"channel": self.client.root}

    def about(self, name: str) -> Json:
        return {"session" if self.seed else "channel": name}

    async def turn(self, ident: str, text: str, answer: bool | None = None) -> Json:
        """Prompts, answers the approval if there is one, and returns the finished turn."""
        client, chat = self.client, self.chat
        await client.say(chat, ident, text)
        if answer is not None:
            ready = await self._asked(ident)
            which = {"turnId": ident, "toolCallId": ready["toolCallId"]}
            said: Json = {"approved": True, "confirmed": "user-action"}
            said = said if answer else {"approved": False, "reason": "denied"}
            echo = await client.act(chat, client.verb("toolCallConfirmed"), **which, **said)
            assert "rejectionReason" not in echo
        await client.idle(chat)
        return next(turn for turn in client.states[chat]["turns"] if turn["id"] == ident)

    async def _asked(self, turn: str) -> Json:
        def waiting() -> list[Json]:
            ready = self.client.actions(self.client.verb("toolCallReady"))
            return [each for each in ready if each["turnId"] == turn and "confirmed" not in each]

        found: list[Json] = await self.client.wait(waiting)
        return found[-1]

    async def listed(self) -> list[Json]:
        return list((await self.client.request("listSessions", **self.root))["items"])

    def calls(self, turn: Json) -> list[Json]:
        return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


@pytest.mark.parametrize("version", [SEED, *reversed(SUPPORTED)])
async def test_the_story(tmp_path: Path, version: str) -> None:
    home, work, script = tmp_path / "home", tmp_path / "work", tmp_path / "script.yaml"
    work.mkdir()
    script.write_text(SCRIPT)
    git(work, "init")
    for key, value in (("user.name", "t"), ("user.email", "t@example.org")):
        git(work, "config", key, value)
    (work / "notes.txt").write_text("one\n")
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    serve = ["--script", str(script), "--agent", "scripted", "--workspace", str(work)]
    # A plain bash: what the user's own start-up files make of it is not ours to test.
    host_process = partial(HostProcess, home, *serve, SHELL="/bin/bash", HOME=str(tmp_path))
    with host_process() as host:
        editor = Editor(_url(host, home), version)
        await editor.client.open()
        await editor.client.initialize(editor.client.root)
        await _walk(editor, work)
        await editor.client.say(editor.chat, "cut", "hold")
        await editor.client.wait(lambda: "half" in str(editor.client.states[editor.chat].get("activeTurn")))
        await asyncio.to_thread(host.kill)
    with host_process() as host:
        await _return(editor, _url(host, home))
        await editor.client.close()
    assert editor.client.wrong == []


def _url(host: HostProcess, home: Path) -> str:
    return f"ws://127.0.0.1:{host.port}/ahp?tkn={(home / 'token').read_text().strip()}"


async def _walk(editor: Editor, work: Path) -> None:
    client, chat = editor.client, editor.chat
    # create
    await client.create_session(SESSION, **({} if editor.seed else {"provider": "scripted"}))
    assert len(await editor.listed()) == (1 if editor.seed else 0)  # later versions: a draft, until its first message
    # prompt
    turn = await editor.turn("prompt", "[[say:hello]]")
    assert "hello" in str(turn["responseParts"])
    assert [each["resource"] for each in await editor.listed()] == [SESSION]
    # approve, deny
    [call] = editor.calls(await editor.turn("approve", "run touch x", answer=True))
    assert (call["status"], call["toolInput"], call["_meta"]["toolKind"]) == ("completed", "touch x", "terminal")
    [call] = editor.calls(await editor.turn("deny", "run rm -rf /", answer=False))
    assert (call["status"], call["reason"], call["toolInput"]) == ("cancelled", "denied", "rm -rf /")
    # sub-agent
    [call] = editor.calls(await editor.turn("child", "child please"))
    [worker] = [each["resource"] for each in call["content"] if each["type"] == "subagent"]
    derived = f"{SESSION}/subagent/{call['toolCallId']}" if editor.seed else uri.subagent(SESSION, call["toolCallId"])
    assert worker == derived
    await client.subscribe(worker)
    assert "found" in str(client.states[worker]["turns"])
    # fork
    if editor.seed:
        fork = "scripted:/fork"
        await client.request("createSession", session=fork, fork={"session": SESSION, "turnId": "prompt"})
    else:
        fork = uri.chat(SESSION, "fork")
        kind = {"kind": "fork"} if client.dialect.since("0.7.0") else {}
        source = {**kind, "chat": chat, "turnId": "prompt"}
        await client.request("createChat", channel=SESSION, chat=fork, source=source)
    await client.subscribe(fork)
    assert [turn["id"] for turn in client.states[fork]["turns"]] == ["prompt"]
    # rename, as VS Code does it: on the channel of the default chat
    echo = await client.act(chat, "session/titleChanged", title="Renamed")
    assert "rejectionReason" not in echo
    await client.wait(lambda: "Renamed" in str(client.states[SESSION]))
    # diff
    [call] = editor.calls(await editor.turn("diff", "edit notes.txt", answer=True))
    [edit] = [each for each in call["content"] if each["type"] == "fileEdit"]
    for side, text in (("before", "one\n"), ("after", "one\nthree\n")):
        read = await client.request("resourceRead", **editor.root, uri=edit[side]["content"]["uri"])
        assert read["data"] == text
    if editor.seed:
        await client.wait(lambda: client.states[SESSION]["summary"].get("diffs"))
        shown = client.states[SESSION]["summary"]["diffs"]
    else:
        name = f"{SESSION}/changeset/turn/diff"
        await client.subscribe(name)
        shown = [each["edit"] for each in client.states[name]["files"]]
    assert [each["after"]["uri"] for each in shown] == [(work / "notes.txt").as_uri()]
    assert [each["diff"] for each in shown] == [{"added": 1, "removed": 0}]
    # terminal
    terminal = "t:/1"
    await client.request("createTerminal", **{"terminal" if editor.seed else "channel": terminal}, claim=_claim(client))
    await client.subscribe(terminal)
    await client.wait(lambda: client.states[terminal].get("supportsCommandDetection"))
    await client.act(terminal, "terminal/input", data="echo 4$((1+1))\n")
    await client.wait(lambda: "42" in str(client.states[terminal]["content"]))
    await client.request("disposeTerminal", **{"terminal" if editor.seed else "channel": terminal})
    client.states.pop(terminal)


def _claim(client: WireClient) -> Json:
    return {"kind": "client", "clientId": client.client_id}


async def _return(editor: Editor, url: str) -> None:
    """After the kill: what was seen is there, the turn has one end, and the story goes on."""
    client, chat = editor.client, editor.chat
    client.url = url
    result = await client.reconnect()
    assert result["type"] in ("replay", "snapshot")
    cut = client.states[chat]["turns"][-1]
    assert (cut["id"], cut["state"]) == ("cut", "error")
    assert "half" in str(cut["responseParts"])
    assert "executionInterrupted" in str(cut)
    turn = await editor.turn("after", "[[say:again]]")
    assert "again" in str(turn["responseParts"])
    fresh = WireClient(url, "fresh", client.version)
    await fresh.open()
    await fresh.initialize(fresh.root)
    await fresh.subscribe(chat)
    assert fresh.states[chat]["turns"] == client.states[chat]["turns"]
    [summary] = [each for each in await editor.listed() if each["resource"] == SESSION]
    assert summary["title"] == "Renamed"
    await fresh.close()
