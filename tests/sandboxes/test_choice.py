"""Which sandbox a session has, who may choose it, and what passes without approval inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico.features.sandboxes.choice import mode_of
from portico.features.sandboxes.feature import Sandboxes, confine
from portico.kernel import commands as c
from portico.kernel.action import Action, command
from portico.kernel.approval import Request
from portico.kernel.errors import BadRequest, Forbidden, SandboxUnavailable
from portico.kernel.events import Message
from portico.kernel.turn import Turn
from portico.sandbox import available
from portico.server.settings import AgentSandbox, SandboxSettings
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.agents.acp_agent import fake_agent, said, steps
from tests.features import feature

PLAIN = SandboxSettings()
STRICT = SandboxSettings(default="strict")
REQUIRED = SandboxSettings(require=True)
CODEX = SandboxSettings(default="off", agents={"acp:codex": AgentSandbox(default="strict")})


@pytest.mark.parametrize(
    ("config", "settings", "unattended", "works", "mode"),
    [
        ({}, PLAIN, False, True, "off"),
        ({}, PLAIN, True, True, "project"),
        ({}, PLAIN, True, False, "off"),
        ({"sandbox": "strict"}, PLAIN, False, False, "strict"),
        ({"sandbox": "off"}, PLAIN, True, True, "off"),
        ({"sandbox": ""}, PLAIN, False, True, "off"),
        ({}, STRICT, False, False, "strict"),
        ({}, STRICT, True, True, "strict"),
        ({"sandbox": "project"}, STRICT, False, True, "project"),
        ({}, REQUIRED, False, False, "project"),
        ({"sandbox": "strict"}, REQUIRED, False, True, "strict"),
        ({}, CODEX, True, True, "strict"),
    ],
)
def test_the_sandbox_of_a_session(
    config: dict[str, Any], settings: SandboxSettings, unattended: bool, works: bool, mode: str
) -> None:
    assert mode_of(config, "acp:codex", settings, unattended=unattended, works=works) == mode


def test_what_is_refused() -> None:
    with pytest.raises(Forbidden, match=r"requires a sandbox \(sandbox.require\)"):
        mode_of({"sandbox": "off"}, "loop", REQUIRED, unattended=False, works=True)
    with pytest.raises(BadRequest, match=r"config.sandbox: Should be one of 'off', 'project', 'strict', not 'yes'"):
        mode_of({"sandbox": "yes"}, "loop", PLAIN, unattended=False, works=True)


def caller(*scopes: c.Scope) -> c.Caller:
    return c.Caller("", "someone", frozenset(scopes))


@pytest.mark.parametrize(("mode", "allowed"), [("project", False), ("strict", False), ("off", True)])
async def test_a_sandbox_is_chosen_by_who_may_approve(
    open_host: HostOpener, tmp_path: Path, mode: str, allowed: bool
) -> None:
    """Inside, calls run without asking: a token that may not approve must not choose that."""
    host = await open_host()
    start = c.StartSession(cwd=str(tmp_path), config={"sandbox": mode})
    if not allowed:
        with pytest.raises(Forbidden, match="approve"):
            await host.do(start, caller("drive"))
    await host.do(start, caller("drive", "approve"))


@pytest.mark.parametrize(
    "leave",
    [
        lambda ident: c.ConfigureSession(session=ident, values={"sandbox": "off"}),
        lambda ident: c.ConfigureSession(session=ident, values={"mode": "x"}, replace=True),
        lambda ident: c.ChangeSession(session=ident, config={"sandbox": "off"}),
    ],
    ids=["configure", "replace", "change"],
)
async def test_a_sandbox_is_left_by_who_may_approve(
    open_host: HostOpener, tmp_path: Path, leave: Callable[[str], c.Command]
) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    off = leave(session.id)
    with pytest.raises(Forbidden, match="approve"):
        await host.do(off, caller("drive"))
    await host.do(off, caller("drive", "approve"))
    assert feature(host, Sandboxes).mode(session) == "off"


async def test_an_open_process_is_replaced_when_a_sandbox_is_chosen(open_host: HostOpener, tmp_path: Path) -> None:
    """The agent's process was started without one, and the session kept using it."""
    host = await open_host(fake_agent(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    session = await host.start(by="test", cwd=str(work))
    shown = []
    for mode in ("off", "project", "off"):
        await host.do(c.ConfigureSession(session=session.id, values={"sandbox": mode}), c.Caller.inside("test"))
        message = Message(steps(["shell", "echo -n ${PORTICO_SANDBOX:-off}"]))
        turn = await session.wait(await session.send(message, by="test"))
        shown.append(said(turn))
    assert shown == ["off", "project", "off"]


async def test_nothing_runs_unconfined_where_the_sandbox_does_not_work(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    monkeypatch.setenv("PATH", "/nowhere")
    available.problem.cache_clear()
    with pytest.raises(SandboxUnavailable, match="sudo apt install bubblewrap"):
        await confine(session)
    with pytest.raises(SandboxUnavailable):
        await host.do(
            c.StartSession(cwd=str(tmp_path), config={"sandbox": "strict"}), caller("drive", "approve", "terminal")
        )
    turn = await session.wait(await session.send(Message("hello"), by="test"))
    assert turn.error is not None
    assert "sudo apt install bubblewrap" in turn.error.message


def request(action: Action, **more: Any) -> Request:
    return Request(action=action, tool="tool", call="c", title="", input="{}", **more)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (request(command("make test")), "sandbox: project"),
        (request(Action("write", files=("a.txt",))), "sandbox: project"),
        (request(Action("write", files=(".env",))), None),
        (request(command("sudo make")), None),
        (request(Action("other")), None),
        (request(command("make test"), strict=True), None),
        (request(command("make test"), result=True), None),
    ],
)
async def test_calls_inside_pass_and_rules_still_apply(
    open_host: HostOpener, tmp_path: Path, asked: Request, rule: str | None
) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    ruling = session.approvals.rule(asked)
    assert (ruling.rule if ruling is not None else None) == rule


async def test_an_agent_that_cannot_be_confined_is_refused_when_it_is_chosen(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """The agent `copilot` starts its processes itself; the same program over ACP can be confined."""
    host = await open_host(*(PlayAgent(play, ident) for ident in ("copilot", "other")))
    for agent, instead in (("copilot", "Choose 'acp:copilot'"), ("other", "Choose another agent")):
        start = c.StartSession(agent=agent, cwd=str(tmp_path), config={"sandbox": "project"})
        with pytest.raises(SandboxUnavailable, match=f"cannot be confined.*{instead}, or sandbox = 'off'"):
            await host.do(start, c.Caller.inside("test"))
        session = await host.start(by="test", agent=agent, cwd=str(tmp_path), config={"sandbox": "project"})
        with pytest.raises(SandboxUnavailable, match=instead):
            await confine(session)


async def play(message: Message, turn: Turn) -> None:
    turn.text("hello")
