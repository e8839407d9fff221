"""A token without `approve` switched asking off through the agent's own options."""

from pathlib import Path
from typing import Any

import pytest

from portico.agents import script as s
from portico.agents.acp.autonomy import KNOWN, classify, kind_of
from portico.agents.acp.program import PRESETS, Program
from portico.agents.scripted import ScriptedAgent
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.autonomy import Answering, Autonomy, loosened
from portico.kernel.errors import Forbidden
from portico.kernel.events import HOST
from portico.testing.fixtures import HostOpener

A, L, N, U = Autonomy.ASKS, Autonomy.ASKS_LESS, Autonomy.ASKS_NOBODY, Autonomy.UNKNOWN


class Classed:
    """`mode` a, l, n are classed; `free` decides over nothing; whatever else is unknown."""

    def autonomy(self, option: str, value: object) -> Autonomy:
        known = {"a": A, "l": L, "n": N}
        return A if value is None or option == "free" else known.get(str(value), U) if option == "mode" else U


AGENTS = {"classed": Classed(), "other": Classed(), "silent": object()}
OTHER = {"fallback": ["other"]}


@pytest.mark.parametrize(
    ("agent", "before", "after", "found"),
    [
        ("classed", None, {}, []),
        ("classed", None, {"mode": "a"}, []),
        ("classed", None, {"mode": "l"}, ["mode"]),
        ("classed", None, {"mode": "n"}, ["mode"]),
        ("classed", None, {"mode": "new in this version"}, ["mode"]),
        ("classed", None, {"mode": {"nested": True}}, ["mode"]),
        ("classed", None, {"option nobody knows": "on"}, ["option nobody knows"]),
        ("classed", None, {"free": "x", "isolation": "folder", "branch": "main", "commands": []}, []),
        ("classed", {"mode": "n"}, {"mode": "n"}, []),
        ("classed", {"mode": "n"}, {"mode": "l"}, []),
        ("classed", {"mode": "l"}, {"mode": "n"}, ["mode"]),
        ("classed", {"mode": "n"}, {}, []),
        ("classed", {"mode": "strange"}, {"mode": "stranger"}, ["mode"]),
        ("classed", {"mode": "strange"}, {"mode": "n"}, []),
        ("silent", None, {"anything": 1}, ["anything"]),
        ("absent", None, {"anything": 1}, ["anything"]),
        # A fallback takes the settings over, whichever of the two came first.
        ("classed", {"free": "x"}, {"free": "x", **OTHER}, []),
        ("classed", {"mode": "n"}, {"mode": "n", **OTHER}, ["mode"]),
        ("classed", OTHER, {**OTHER, "mode": "n"}, ["mode", "mode"]),
        ("classed", None, {"fallback": ["silent/model"], "free": "x"}, ["free"]),
        # The host's own: any change counts, to take one away is one.
        ("classed", None, {"approvals": "allow"}, ["approvals"]),
        ("classed", {"approvals": "deny"}, {}, ["approvals"]),
        ("classed", {"approvals": "deny"}, {"approvals": "deny"}, []),
        ("classed", {"permissions": {"deny": ["x"]}}, {"permissions": {}}, ["permissions"]),
    ],
)
def test_what_loosens(agent: str, before: dict[str, Any] | None, after: dict[str, Any], found: list[str]) -> None:
    old = None if before is None else Answering(agent, before)
    assert [each.setting for each in loosened(AGENTS, old, Answering(agent, after))] == found


PROGRAMS = {
    **PRESETS,
    "node gemini": Program(command=["/usr/bin/node", "/opt/@google/gemini-cli/bundle/gemini.js", "--acp"]),
    "npx claude": Program(command=["npx", "-y", "@agentclientprotocol/claude-agent-acp"]),
}


@pytest.mark.parametrize(
    ("program", "option", "value", "autonomy"),
    [
        ("claude", "mode", "default", A),
        ("claude", "mode", "plan", A),
        ("claude", "mode", "acceptEdits", L),
        ("claude", "mode", "bypassPermissions", N),
        ("npx claude", "mode", "bypassPermissions", N),
        ("codex", "mode", "read-only", A),
        ("codex", "mode", "agent", N),
        ("codex", "mode", "workspace-write", N),
        ("codex", "mode", "agent-full-access", N),
        ("codex", "collaboration_mode", "plan", A),
        ("copilot", "allow_all", "on", N),
        ("copilot", "allow_all", "off", A),
        ("copilot", "mode", "https://agentclientprotocol.com/protocol/session-modes#plan", A),
        ("copilot", "mode", "https://agentclientprotocol.com/protocol/session-modes#autopilot", N),
        ("gemini", "mode", "yolo", N),
        ("gemini", "mode", "autoEdit", L),
        ("node gemini", "mode", "default", A),
        ("goose", "mode", "auto", N),
        ("goose", "mode", "smart_approve", L),
        ("goose", "mode", "approve", A),
        ("goose", "provider", "claude-code", U),
        ("goose", "thinking_effort", "off", A),
        ("opencode", "mode", "build", A),
        ("opencode", "mode", "an agent of the folder's", U),
        ("qwen", "mode", "default", A),
        ("qwen", "mode", "auto-edit", L),
        ("qwen", "mode", "auto", N),
        ("qwen", "mode", "yolo", N),
        ("claude", "mode", "new-mode", U),
        ("claude", "mode", "", A),
        ("claude", "effort", "high", A),
        ("claude", "color", "red", U),
        ("claude", "color", None, A),
        ("codex", "mode", "auto", N),
        ("goose", "provider", "x", U),
        ("opencode", "mode", "mine", U),
        ("qwen", "/help", None, A),
        ("qwen", "/yolo", None, U),
        *((name, "reasoning_effort", "high", A) for name in PRESETS),
        *((name, "mode", "invented tomorrow", U) for name in PRESETS),
        *((name, "option", "invented tomorrow", U) for name in PRESETS),
        *((name, "mode", None, A) for name in PRESETS),
    ],
)
def test_the_options_of_known_agents(program: str, option: str, value: str | None, autonomy: Autonomy) -> None:
    assert classify(PROGRAMS[program], option, value) is autonomy


def test_every_preset_has_a_table_and_only_the_program_decides_which() -> None:
    """Of the presets that were never run, no mode is known: every value counts as the loosest one."""
    never_run = {"auggie", "cline", "cursor-agent", "droid", "junie", "kilo", "kimi", "qoder", "vibe"}
    assert {kind_of(each) for name, each in PRESETS.items() if name not in never_run} == set(KNOWN)
    assert {kind_of(PRESETS[name]) for name in never_run} == {None}
    stranger = Program(command=["my-agent", "gemini"])
    assert classify(stranger, "mode", "default") is U
    assert classify(stranger, "mode", None) is A


def test_the_settings_class_what_is_unknown_and_name_the_default() -> None:
    program = Program(command=["my-agent"], asks={"mode": ["plan", "code"], "speed": ["*"]})
    values = [("mode", "plan"), ("mode", "yolo"), ("speed", "fast"), ("other", "x")]
    assert [classify(program, *each) for each in values] == [A, U, A, U]
    # The owner's own choice for new sessions; to go back to it from something stricter is a change.
    loose = Program(command=["gemini", "--acp"], mode="yolo")
    assert classify(loose, "mode", None) is N


DRIVER = c.Caller("token-1", "driver", frozenset({"read", "drive"}))


async def test_the_host_refuses_and_audits(open_host: HostOpener, tmp_path: Path) -> None:
    agent = ScriptedAgent(s.Provider("scripted", "Scripted", autonomy={"mode": {"yolo": "asks-nobody"}}))
    host = await open_host(agent)
    with pytest.raises(Forbidden, match=r"config.mode = 'yolo' \(scripted asks nobody\)"):
        await host.start(by="driver", cwd=str(tmp_path), config={"mode": "yolo"}, may_approve=False)
    session = await host.start(by="driver", cwd=str(tmp_path), config={"mode": "plan"}, may_approve=False)
    with pytest.raises(Forbidden, match=r"config\.mode"):
        await host.do(c.ConfigureSession(session=session.id, values={"mode": "yolo"}), DRIVER)
    assert session.state.config == {"mode": "plan"}
    await session.do(c.ConfigureSession(session=session.id, values={"mode": "yolo"}), "ada")
    # What is there may be forked and gone on with, and made stricter.
    fork = await host.fork(session.id, by="driver")
    await host.do(c.ConfigureSession(session=session.id, values={"mode": "plan"}), DRIVER)
    audit = [record.event for record in await host.log.read(HOST) if isinstance(record.event, e.Audited)]
    assert [(each.action, each.by, each.detail["session"]) for each in audit] == [
        ("approval.loosened", "ada", session.id)
    ]
    assert fork.state.config == {"mode": "yolo"}
