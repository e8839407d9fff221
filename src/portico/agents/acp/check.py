"""Start an ACP agent and run the handshake: `initialize`, then a session in an empty folder, because most agents
report only there that the user is not signed in. Every failure becomes one sentence with the next step."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from acp import PROTOCOL_VERSION

from portico.agents.acp.autonomy import kind_of
from portico.agents.acp.link import AgentLink
from portico.agents.acp.program import Program
from portico.agents.supervisor import SlowStart
from portico.kernel.agent import Check, CheckStatus
from portico.kernel.errors import AgentError, AgentUnavailable
from portico.kernel.events import Json

if TYPE_CHECKING:
    from portico.agents.acp.agent import AcpAgent

SLOW_SECONDS = 10.0
"""A start that takes longer is reported. Most agents need two seconds; some unpack themselves at the first start."""
AUTH_SECONDS = 5.0
"""Claude's adapter asks another program for the sign-in status and reports it within two seconds of its start."""
PROMPT_SECONDS = 15.0
"""For the answer to a one-word prompt. A refusal is quick, so an agent that takes longer is working on it."""
_METHOD_NOT_FOUND = "(-32601)"


async def check(agent: "AcpAgent") -> Check:
    """It waits for the start as long as a turn does, so that both have the same result."""
    supervisor, began = agent.supervise(pooled=False), time.monotonic()
    try:
        try:
            link = await supervisor.get()
            started = time.monotonic() - began
        except AgentError as error:
            return Check(agent.id, *_explain(agent.program, error, starting=True))
        with tempfile.TemporaryDirectory(prefix="portico-check-") as folder:
            found = await _shake_hands(agent, link, folder)
        if found.ok and started > SLOW_SECONDS:
            return Check(found.agent, "ready", f"{found.detail}; its start took {started:.0f} seconds")
        return found
    except AgentError as error:
        return Check(agent.id, *_explain(agent.program, error, starting=False))
    finally:
        await supervisor.close()


async def _shake_hands(agent: "AcpAgent", link: AgentLink, folder: str) -> Check:
    spoken = link.about.get("protocolVersion")
    if spoken != PROTOCOL_VERSION:
        return Check(
            agent.id,
            "wrong_version",
            f"It speaks version {spoken!r} of the Agent Client Protocol, and Portico speaks {PROTOCOL_VERSION}. "
            "Install a version of it that speaks this one.",
        )
    try:
        answer = await _begin(agent, link, folder)
    except AgentUnavailable:
        if agent.program.auth is None:
            agent.remember(agent.sign_in_words(link))
            return Check(agent.id, "not_signed_in", agent.sign_in_words(link))
        await agent.authenticate(link)
        answer = await _begin(agent, link, folder)
    agent.learn(link, answer)
    agent.works()
    if link.capability("sessionCapabilities", "close"):
        with contextlib.suppress(AgentError):  # it works: a failing close is no reason to refuse it
            await link.request("session/close", {"sessionId": answer.get("sessionId")})
    info = link.about.get("agentInfo")
    version = f"version {info.get('version')}, " if isinstance(info, dict) and info.get("version") else ""
    count = len((await agent.describe()).models)
    return Check(agent.id, "ready", f"{version}{count} model{'s' * (count != 1)}")


async def _begin(agent: "AcpAgent", link: AgentLink, folder: str) -> Json:
    """Open a session; raises AgentUnavailable if the user is not signed in. An agent that reports this and still opens
    a session may ignore a token in its environment, so it gets a prompt: without a login it refuses immediately, and
    no tokens are spent."""
    answer = await link.request("session/new", {"cwd": folder, "mcpServers": []})
    if kind_of(agent.program) == "claude":  # its status can arrive after the session
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(AUTH_SECONDS):
                await link.auth_known.wait()
    if link.says_signed_out:
        prompt = {"sessionId": answer.get("sessionId"), "prompt": [{"type": "text", "text": "Reply with: ok"}]}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PROMPT_SECONDS):
                await link.request("session/prompt", prompt)
    return answer


def _explain(program: Program, error: AgentError, *, starting: bool) -> tuple[CheckStatus, str]:
    if wrong := wrong_node(program):
        return "wrong_node", f"{wrong} {error.message}"
    if isinstance(error, SlowStart):
        command = " ".join(program.command)
        hint = f"If it never answers: is `{command}` a program that speaks the Agent Client Protocol?"
        return "slow", f"{error.message} {hint}"
    if starting or _METHOD_NOT_FOUND in error.message:
        command = " ".join(program.command)
        hint = f"Is `{command}` a program that speaks the Agent Client Protocol on its standard input?"
        return "not_acp", f"{error.message.rstrip('.')}. {hint}"
    return "failed", error.message


def wrong_node(program: Program) -> str:
    """For a program of npm that wants another Node than the one here: which. Empty for all others."""
    path = program.path()
    package = _package(Path(path)) if path is not None else None
    wanted = package.get("engines", {}).get("node", "") if package is not None else ""
    node = shutil.which("node")
    if not wanted or node is None:
        return ""
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10, check=False)
    here = done.stdout.strip().removeprefix("v")
    if not here or satisfies(here, wanted):
        return ""
    return f"It wants Node {wanted}, and this is Node {here}: install another Node."


def _package(path: Path) -> dict[str, dict[str, str]] | None:
    """The package.json that a program belongs to; npm's links lead there."""
    for folder in path.resolve().parents:
        try:
            found = json.loads((folder / "package.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        return found if isinstance(found, dict) and isinstance(found.get("engines", {}), dict) else None
    return None


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version lies in a range as package.json writes it. What cannot be read counts as satisfied."""
    return any(_all_of(_numbers(version), alternative) for alternative in wanted.split("||"))


def _all_of(version: tuple[int, ...], comparators: str) -> bool:
    found = re.findall(r"(>=|<=|>|<|\^|~|=|)\s*v?(\d+(?:\.\d+)*)", comparators)
    return all(_one(version, sign, _numbers(number)) for sign, number in found)


def _one(version: tuple[int, ...], sign: str, number: tuple[int, ...]) -> bool:
    whole = (*number, 0, 0)[:3]
    match sign:
        case ">=":
            return version >= whole
        case ">":
            return version[: len(number)] > number
        case "<":
            return version < whole
        case "<=":
            return version[: len(number)] <= number
        case "^":
            return version >= whole and version[0] == number[0]
        case "~":
            return version >= whole and version[: min(len(number), 2)] == number[:2]
    return version[: len(number)] == number


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", text)[:3])
