"""Scopes by effect, tried for real: with each single scope, can a command run, a file change, an approval be answered,
asking be switched off? Whatever the commands are called."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from portico.kernel import commands as c
from portico.kernel.errors import Forbidden
from portico.kernel.events import Message
from portico.kernel.state import CallPart, SessionState
from portico.server.identity import new_token
from tests.doors.ahp.wire_client import Refused, WireClient, opened
from tests.doors.standing import Standing, standing
from tests.jobs.playing import make, task, until_ended

SCRIPT = """
providers:
  - {id: scripted, name: Scripted, autonomy: {mode: {yolo: asks-nobody}}}
rules:
  - match: "write (?P<name>\\\\S+)"
    steps: [{do: write, path: "{name}", text: hello}]
  - match: ""
    steps: [{do: say, text: done}]
"""
Answers = list[httpx.Response]


class World:
    """A host with a session of the owner's in which an approval waits, and somebody with one scope."""

    def __init__(self, here: Standing, client: httpx.AsyncClient, token: str, folder: Path) -> None:
        self.here = here
        self.client = client
        self.token = token
        self.folder = folder
        self.session = self.approval = ""

    async def open(self) -> None:
        self.session = await self.here.start(cwd=str(self.folder))
        await self.here.http.post(f"/v1/sessions/{self.session}/messages", json={"text": "write pending.txt"})
        found = await self.here.server.host.get(self.session)
        state = await found.wait_until(lambda state: state.status == "waiting")
        self.approval = next(
            part.approval.id
            for turn in state.turns
            for part in turn.parts
            if isinstance(part, CallPart) and part.approval is not None
        )

    async def do(self, name: str, /, **arguments: Any) -> dict[str, Any] | None:
        """The answer, or None when it is refused."""
        answer = await self.client.post("/v1/commands", json={"command": name, "arguments": arguments})
        assert answer.status_code < 500, answer.text
        found: dict[str, Any] | None = answer.json() if answer.is_success and answer.content else None
        return found

    async def at_rest(self, session: str) -> SessionState:
        found = await self.here.server.host.get(session)
        async with asyncio.timeout(30):
            return await found.wait_until(lambda state: state.status != "running")


@contextlib.asynccontextmanager
async def world(folder: Path, scope: str) -> AsyncIterator[World]:
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    async with standing(folder, agents=("scripted",), script=script) as here:
        token = new_token(here.home, f"only-{scope}", [scope])
        async with here.client(token) as client:
            made = World(here, client, token, folder)
            await made.open()
            yield made


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("HOME", str(tmp_path))


# -- attempts: each returns whether its effect was there ---------------------------------------------------------------


async def terminal(w: World) -> bool:
    opened_ = await w.do("terminal.open", cwd=str(w.folder))
    if opened_ is None:
        return False
    await w.do("terminal.input", terminal=opened_["id"], data="touch from-terminal\n")
    async with asyncio.timeout(30):
        while not (w.folder / "from-terminal").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return True


async def job_of_ones_own(w: World) -> bool:
    """`criteria.command` ran any shell command with the scope `jobs`."""
    criteria = {"command": "touch from-job", "failureAction": {"retryTimes": 0}}
    plan = msgspec.to_builtins(make({"ok": task("[[say:x]]", criteria=criteria)}))
    started = await w.do("job.run", job="main", cwd=str(w.folder), entry=plan)
    if started is None:
        return False
    await until_ended(w.here.server.host.log, f"job/{started['job']}")
    return (w.folder / "from-job").exists()


async def prompt(w: World) -> bool:
    """A new session, and a message: the agent asks."""
    started = await w.do("session.start", agent="scripted", cwd=str(w.folder))
    if started is None:
        return False
    await w.do("message.send", session=started["id"], text="write from-prompt")
    await w.at_rest(started["id"])
    return (w.folder / "from-prompt").exists()


async def loose_session(w: World) -> bool:
    for config in (
        {"approvals": "allow"},
        {"autoApprove": "autoApprove"},
        {"mode": "yolo"},
        {"permissions": {"allow": ["write"]}},
    ):
        started = await w.do("session.start", agent="scripted", cwd=str(w.folder), config=config)
        if started is not None:
            return True
    return False


async def configured(w: World) -> bool:
    changes = [{"approvals": "allow"}, {"mode": "yolo"}, {"editAutoApprovePatterns": {"**": True}}]
    done = [await w.do("session.configure", session=w.session, values=each) for each in changes]
    done += [await w.do("host.configure", values={"globalAutoApproveEnabled": True})]
    done += [await w.do("folder.add", session=w.session, folder="/")]
    done += [await w.do("grant.add", agent="scripted", tool="*", allow=True, session=w.session)]
    return any(each is not None for each in done)


async def answered(w: World) -> bool:
    done = await w.do("approval.answer", approval=w.approval, allow=True)
    state = await w.at_rest(w.session)
    return done is not None and state.status != "waiting"


async def file_through_an_editor(w: World) -> bool:
    url = f"{w.here.url.replace('http', 'ws')}/?tkn={w.token}"
    with contextlib.suppress(Refused, InvalidStatus):
        async with opened(WireClient(url, "editor", "0.9.0")) as client:
            await client.initialize()
            uri = (w.folder / "from-editor").as_uri()
            await client.request("resourceWrite", uri=uri, data="x", encoding="utf-8")
    return (w.folder / "from-editor").exists()


async def message_with_a_command(w: World) -> bool:
    """What `command.run` puts into a message, put there by hand: with `drive` it ran whatever it said."""
    ran = w.folder / "from-message"
    meta = {"commandLine": f"touch {ran}"}
    started = await w.do("session.start", agent="scripted", cwd=str(w.folder))
    session = started["id"] if started is not None else w.session
    for fields in ({"meta": meta}, {"text": "x", "meta": meta}):
        await w.do("message.send", session=session, **{"text": "x", **fields})
        await w.do("queue.add", session=session, message={"text": "x", **fields}, pending="mine")
        await w.do("queue.edit", session=session, pending="mine", **{"text": "x", **fields})
        await w.do("queue.release", session=session)
    found = await w.here.server.host.get(session)
    for command in (
        c.SendMessage(session=session, text="x", meta=meta),
        c.QueueMessage(session=session, message=Message("x", meta=meta)),
    ):  # as a door would that passes on what its clients say
        with contextlib.suppress(Forbidden):
            await w.here.server.host.do(command, w.here.server.tokens.by_token(w.token) or pytest.fail("no caller"))
    if session != w.session:
        async with asyncio.timeout(30):
            await found.wait_until(lambda state: state.status == "idle" and not state.queue)
    return ran.exists()


def _repository(folder: Path) -> None:
    folder.mkdir()
    for command in (["init", "-q", "."], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *command], cwd=folder, check=True)
    (folder / "link").symlink_to(".git")


async def program_of_git(w: World) -> bool:
    """A filter in the settings of the repository runs at the next commit."""
    ran, repository = w.folder / "from-git", w.folder / "repository"
    await asyncio.to_thread(_repository, repository)
    session = await w.here.start(cwd=str(repository))
    await w.here.say(session, "anything")
    filtering = f'[user]\nname=x\nemail=x@y\n[filter "x"]\nclean = touch {ran}; cat\n'
    for path in (".git/config", ".GIT/config", "link/config"):
        await w.do("file.write", path=str(repository / path), data=filtering)
    await w.do("file.write", path=str(repository / "settings"), data=filtering)
    await w.do("file.copy", source=str(repository / "settings"), destination=str(repository / ".git/config"))
    await w.do("file.move", source=str(repository / "settings"), destination=str(repository / ".git/config"))
    await w.do("file.write", path=str(repository / ".gitattributes"), data="* filter=x")
    shown = (await w.here.http.get(f"/v1/sessions/{session}/changes")).json()
    await w.do("changes.commit", session=session, message="x", state=shown.get("state"))
    return ran.exists()


async def files_of_the_host(w: World) -> bool:
    """Its home lies in the workspace: tokens are files, and so are settings."""
    home = w.here.home.path
    before = {each: each.read_bytes() for each in (home / "token", home / "tokens.json")}
    copy, stolen = w.folder / "copy", w.folder / "stolen"
    for path in [*before, home / "settings.toml", home / "new"]:
        await w.do("file.write", path=str(path), data="[]")
        await w.do("file.delete", path=str(path))
        await w.do("file.copy", source=str(path), destination=str(stolen))
    await w.do("file.copy", source=str(home), destination=str(copy))
    await w.do("file.copy", source=str(w.folder), destination=str(w.folder.parent / "all"))
    await w.do("file.move", source=str(home), destination=str(w.folder / "gone"))
    await w.do("file.delete", path=str(home), recursive=True)
    made = {home / "settings.toml", home / "new", copy, stolen}
    return any(each.exists() for each in made) or any(path.read_bytes() != was for path, was in before.items())


async def elsewhere(w: World) -> bool:
    """In a folder that is none of the host's."""
    outside = w.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    session = await w.do("session.start", agent="scripted", cwd=str(outside))
    job = await w.do("job.run", job="main", cwd=str(outside))
    shell = await w.do("terminal.open", cwd=str(outside))
    return any(each is not None for each in (session, job, shell))


async def automation_of_the_owner(w: World) -> bool:
    """One whose prompts ask nobody: with `jobs` alone its text is nobody else's to choose."""
    prompt_ = {
        "text": "write from-automation",
        "agent": "scripted",
        "cwd": str(w.folder),
        "config": {"approvals": "allow"},
    }
    made = {"name": "loose", "plan": {"prompt": prompt_}}
    owner = {"command": "automation.create", "arguments": made}
    answer = await w.here.http.post("/v1/commands", json=owner)
    assert answer.status_code in (200, 201, 409), answer.text
    ran = await w.do("automation.run", automation="loose", input="write from-stranger")
    edited = await w.do("automation.edit", automation="loose", plan={"prompt": {**prompt_, "text": "write other"}})
    own = await w.do("automation.create", name="own", plan={"prompt": prompt_})
    secret = await w.do("automation.secret", automation="loose")
    return any(each is not None for each in (ran, edited, own, secret))


async def more_than_one_has(w: World) -> bool:
    """A token or a person by which somebody could do more afterwards."""
    done = [await w.do("own_token.add", name="more", scopes=["admin"])]
    done += [await w.do("token.add", name="more", scopes=["admin"])]
    done += [await w.do("person.add", name="eve", scopes=["admin"])]
    return any(each is not None for each in done)


async def others_approve(w: World) -> bool:
    """Somebody else's token answers then, in a session that this one may only drive."""
    return await w.do("session.share", session=w.session, person="*", rights=["approve"]) is not None


async def a_line_without_the_agent(w: World) -> bool:
    """`command.run`: a shell in the session's folder."""
    started = await w.here.start(cwd=str(w.folder))
    ran = w.folder / "from-line"
    if await w.do("command.run", session=started, line=f"touch {ran}") is None:
        return False
    await w.at_rest(started)
    return ran.exists()


ATTEMPTS: dict[str, tuple[Callable[[World], Awaitable[bool]], set[str]]] = {
    "run a command in a terminal": (terminal, {"terminal"}),
    # `jobs` alone runs the jobs of the host's own entry, and `terminal` alone no jobs.
    "run a command by a job of one's own": (job_of_ones_own, set()),
    "change a file by a prompt": (prompt, set()),
    "change a file through an editor's protocol": (file_through_an_editor, set()),
    "run a command by a message": (message_with_a_command, set()),
    "run a command through the settings of git": (program_of_git, set()),
    "change or copy a file of the host itself": (files_of_the_host, set()),
    "start a session that asks nobody": (loose_session, set()),
    "switch asking off": (configured, {"approve"}),
    "answer an approval": (answered, {"approve"}),
    "work in another folder": (elsewhere, set()),
    "choose what an automation does that asks nobody": (automation_of_the_owner, set()),
    "become more than one is": (more_than_one_has, {"admin"}),
    "let others approve": (others_approve, set()),
    "run a line in place of the agent": (a_line_without_the_agent, {"terminal"}),
}
TOGETHER: dict[str, set[str]] = {
    # First: in a folder where a sandbox was open, as that of a job, git of the host runs in a sandbox, too.
    "run a command through the settings of git": {"files", "terminal"},
    "run a command by a job of one's own": {"jobs", "terminal"},
    "start a session that asks nobody": {"drive", "approve"},
    "change a file through an editor's protocol": {"read", "drive", "files"},
    "work in another folder": {"drive", "approve"},
    "choose what an automation does that asks nobody": {"jobs", "drive", "approve"},
    "let others approve": {"drive", "approve"},
}
"""What no single scope can do, and which can together."""


@pytest.mark.parametrize("scope", c.SCOPES)
async def test_what_one_scope_can_do(tmp_path: Path, scope: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    async with world(folder, scope) as w:
        could = {name for name, (attempt, _) in ATTEMPTS.items() if await attempt(w)}
    assert could == {name for name, (_, scopes) in ATTEMPTS.items() if scope in scopes}


async def test_what_scopes_can_do_together(tmp_path: Path) -> None:
    """So that a refusal above is one of scopes, and not of a mistake in the attempt."""
    folder = tmp_path / "work"
    folder.mkdir()
    async with world(folder, "read") as w:
        for number, (name, scopes) in enumerate(TOGETHER.items()):
            w.token = new_token(w.here.home, f"some-{number}", sorted(scopes))
            async with w.here.client(w.token) as w.client:
                assert await ATTEMPTS[name][0](w), name
