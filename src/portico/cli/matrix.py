"""Tests the capabilities of an agent on a separate host in an empty folder: streams, tools, approvals, cancel ...

Each check is a turn with the agent's real model. With `scripted` the model behind it is the scripted model server
(`portico model-server`), which answers as the prompt specifies, so that the result does not depend on a real model.
"""

import asyncio
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from portico.agents.agent import Agent, AgentInfo, Message
from portico.agents.native import KeepsSessions
from portico.agents.transcript import NOTE
from portico.cli.native_checks import NATIVE, NativeCheck
from portico.cli.trial import lone_host
from portico.features.readiness.checks import check_agent
from portico.kernel.call import Call
from portico.kernel.errors import PorticoError
from portico.kernel.events import Json, PartDelta, ToolSpec
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, SessionState, TextPart, TurnState
from portico.kernel.tool import Tool, ToolResult

SECONDS = 120.0
"""For one check: a slow model on a busy machine."""
CHECKS = ("stream", "usage", "tools", "allow", "deny", "cancel", "resume", "MCP", "attachments", "long output", *NATIVE)
TOOL = "portico_matrix_note"
TOOL_TURNS = 3
"""Turns until a session's tool must have been called: some agents connect to its server after they have answered."""

Answer = Literal["yes", "no", "unknown"]


class MatrixCell(Struct, frozen=True):
    answer: Answer
    detail: str = ""


class MatrixRow(Struct, frozen=True):
    agent: str
    version: str
    checks: dict[str, MatrixCell]
    problem: str = ""
    """Why no check could run."""


@dataclass
class Bench:
    """The environment for the checks of one agent. `make` creates a new agent, as after a restart of the host."""

    make: Callable[[], Agent]
    folder: Path
    scripted: bool = False
    model: str | None = None

    @asynccontextmanager
    async def host(self) -> AsyncIterator[Host]:
        async with lone_host(self.folder, self.make()) as host:
            host.tools[TOOL] = _NOTE
            yield host

    async def start(self, host: Host) -> Session:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        return await host.start(by="matrix", agent=next(iter(host.agents)), model=self.model, cwd=str(work))

    def prompt(self, words: str, *steps: Json) -> str:
        return json.dumps(list(steps)) if self.scripted else words


Check = Callable[[Bench, Session], Awaitable[dict[str, MatrixCell]]]


async def try_all(make: Callable[[], Agent], **options: Any) -> MatrixRow:
    """Run all checks of one agent. A failed check is a no with its reason, and the other checks continue."""
    agent = make()
    ready = await check_agent(agent)
    await agent.close()
    if not ready.ok:
        return MatrixRow(agent.id, "", {}, ready.detail)
    found: dict[str, MatrixCell] = {}
    with tempfile.TemporaryDirectory(prefix="portico-matrix-", ignore_cleanup_errors=True) as place:
        bench = Bench(make, Path(place), **options)
        checks = iter(_NAMES)
        while len(found) < len(CHECKS):
            async with bench.host() as host:
                await _try_until_no(checks, bench, host, found)
                version = _version(await host.agents[agent.id].describe())
    return MatrixRow(agent.id, version, {name: found[name] for name in CHECKS})


async def _try_until_no(checks: Iterator[Check], bench: Bench, host: Host, found: dict[str, MatrixCell]) -> None:
    """Run checks in one session: some programs take seconds to start. After a no the next check uses a new session."""
    session: Session | None = None
    for check in checks:
        try:
            async with asyncio.timeout(SECONDS):
                session = session or await bench.start(host)
                cells = await check(bench, session)
        except TimeoutError:
            cells = _failed(check, f"not finished within {SECONDS:g} seconds")
        except PorticoError as error:
            cells = _failed(check, error.message)
        found |= cells
        if any(cell.answer == "no" for cell in cells.values()):
            return


def _failed(check: Check, problem: str) -> dict[str, MatrixCell]:
    return {name: MatrixCell("no", problem) for name in _NAMES[check]}


def _version(info: AgentInfo) -> str:
    return "built in" if info.id == "loop" else info.description.partition("version ")[2].rstrip(".")


def markdown(rows: Sequence[MatrixRow]) -> str:
    """Format the table as in docs/guide/agents.md."""
    marks: dict[Answer, str] = {"yes": "yes", "no": "no", "unknown": "–"}
    lines = ["| agent | version | " + " | ".join(CHECKS) + " |", "|---" * (len(CHECKS) + 2) + "|"]
    for row in rows:
        answers = " | ".join(marks[row.checks[name].answer] for name in CHECKS)
        lines.append(f"| `{row.agent}` | {row.version or '–'} | {answers} |")
    return "\n".join(lines)


# -- the checks ------------------------------------------------------------------------------------------------


async def _answers(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    numbers = [f"{number} " for number in range(1, 41)]
    turn = await _play(
        session, bench.prompt("Count from 1 to 40, with spaces, nothing else.", {"say": numbers, "gap": 20})
    )
    records = await session.host.log.read(session.channel)
    pieces = sum(isinstance(record.event, PartDelta) for record in records)
    usage = turn.usage
    counted = usage is not None and usage.input + usage.output > 0
    return {
        "stream": _judged("40" in _said(turn) and pieces > 1, f"{pieces} pieces" if turn.error is None else _why(turn)),
        "usage": _judged(counted, f"{usage.input} in, {usage.output} out" if usage else "no tokens told"),
    }


async def _writes(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    turn, file = await _write(bench, session, allow=True)
    calls = _calls(turn)
    asked = any(call.approvals for call in calls)
    return {
        "tools": _judged(any(call.ok for call in calls), ", ".join(call.tool for call in calls) or _why(turn)),
        "allow": _judged(asked and file.exists(), "" if asked else "it wrote without asking" if calls else _why(turn)),
    }


async def _denies(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    turn, file = await _write(bench, session, allow=False)
    asked = any(call.approvals for call in _calls(turn))
    return {"deny": _judged(asked and not file.exists(), "" if asked else "it did not ask")}


async def _cancels(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    words = "Count from 1 to 2000, with spaces, without leaving anything out."
    turn = await session.send(Message(bench.prompt(words, {"say": "one two three", "hang": 2})), by="matrix")
    await session.wait_until(lambda state: state.active is not None and _speaks(state.active))
    clock = session.host.clock
    began = clock.awake()
    await session.cancel(by="matrix")
    ended = await session.wait(turn)
    return {"cancel": _judged(ended.outcome == "cancelled", f"{clock.awake() - began:.1f} s")}


async def _resumes(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    """In another process, by the agent's own memory."""
    host = session.host
    word = f"word{secrets.token_hex(3)}"
    turn = await _play(session, bench.prompt(f"Remember this word: {word}. Answer just: noted.", {"say": word}))
    if turn.outcome != "completed":
        return {"resume": MatrixCell("no", _why(turn))}
    await session.runner.release()
    for agent in list(host.agents):
        await host.agents[agent].close()
        host.agents[agent] = bench.make()
    turn = await _play(session, bench.prompt("Which word did I tell you? Answer just the word.", {"say": word}))
    retold = NOTE in _said(turn, "notice")
    return {
        "resume": _judged(word in _said(turn) and not retold, "Portico told it what was said" if retold else _why(turn))
    }


async def _calls_tools(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    words = f"Call the tool {TOOL} with the argument 'seen', then answer: done."
    steps: list[Json] = [{"calls": [{"match": f".*{TOOL}", "args": {"argument": "seen"}}]}, {"say": "done"}]
    for _ in range(TOOL_TURNS):
        turn = await _play(session, bench.prompt(words, *steps), allow=True)
        if named := [call for call in _calls(turn) if call.tool == TOOL]:
            return {"MCP": _judged(any(call.ok for call in named), "")}
    return {"MCP": MatrixCell("no", f"it did not call it; {_why(turn)}")}


async def _attaches(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    word = f"word{secrets.token_hex(3)}"
    (bench.folder / "work" / "note.txt").write_text(f"The secret word is {word}.\n")
    attached = [{"type": "file", "uri": (bench.folder / "work" / "note.txt").as_uri(), "label": "note.txt"}]
    told = f"Told: {{{{has {word[:-1]}[{word[-1]}]}}}}."
    prompt = bench.prompt("Which secret word is in the attached note? Do not open any file.", {"say": told})
    turn = await _play(session, prompt, attachments=attached)
    wanted = "Told: yes." if bench.scripted else word
    return {"attachments": _judged(wanted in _said(turn), _why(turn))}


async def _prints(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    command = "seq 1 40000"
    steps: list[Json] = [{"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "done"}]
    turn = await _play(session, bench.prompt(f"Run this command: {command}. Then answer: done.", *steps), allow=True)
    shown = max((len(call.output) for call in _calls(turn)), default=0)
    return {"long output": _judged(turn.outcome == "completed" and shown > 100, f"{shown} characters kept")}


async def _keeps(bench: Bench, session: Session) -> dict[str, MatrixCell]:
    """In the agent's own program: the list of sessions, the history, and the way back."""
    agent: object = session.host.agents[session.state.agent]
    if not isinstance(agent, KeepsSessions):
        return dict.fromkeys(NATIVE, MatrixCell("unknown", "it has no program with sessions"))
    if not session.state.vendor:
        await _play(session, bench.prompt("Answer just: noted.", {"say": "noted"}))

    def prompt(word: str) -> str:
        return bench.prompt(f"Answer just this word: {word}.", {"say": word})

    found = await NativeCheck(session, agent, prompt).run()
    answers: dict[bool | None, Answer] = {True: "yes", False: "no", None: "unknown"}
    return {name: MatrixCell(answers[ok], detail) for name, (ok, detail) in found.items()}


_NAMES: dict[Check, tuple[str, ...]] = {
    _answers: ("stream", "usage"),
    _writes: ("tools", "allow"),
    _denies: ("deny",),
    _attaches: ("attachments",),
    _prints: ("long output",),
    _calls_tools: ("MCP",),
    _resumes: ("resume",),
    _keeps: NATIVE,
    _cancels: ("cancel",),  # the last: some agents send a message without an answer again, together with the next
}
"""In this order, each after the ones before it in the same conversation."""


# -- playing ---------------------------------------------------------------------------------------------------


async def _write(bench: Bench, session: Session, *, allow: bool) -> tuple[TurnState, Path]:
    file = bench.folder / "work" / f"file-{secrets.token_hex(3)}.txt"
    words = f"Use your tool for writing files to create the file {file} with the word yes in it, then answer: done."
    call = {"kind": "write", "args": {"path": str(file), "content": "yes"}}
    turn = await _play(session, bench.prompt(words, {"calls": [call]}, {"say": "done"}), allow=allow)
    return turn, file


async def _play(
    session: Session, text: str, *, allow: bool | None = None, attachments: list[Json] | None = None
) -> TurnState:
    """Run one turn until it ends; every approval in it gets the same answer."""
    turn = await session.send(Message(text, attachments or []), by="matrix")
    while True:
        state = await session.wait_until(lambda state: _approval(state) is not None or _ended(state, turn))
        ident = _approval(state)
        if ident is None:
            return await session.wait(turn)
        await session.approvals.answer(ident, by="matrix", allow=bool(allow))


def _approval(state: SessionState) -> str | None:
    waiting = [call.approval.id for call in _calls(state.active) if call.approval is not None]
    return waiting[0] if waiting else None


def _ended(state: SessionState, turn: str) -> bool:
    found = state.turn(turn)
    return found is not None and found.outcome is not None


def _calls(turn: TurnState | None) -> list[CallPart]:
    return [part for part in turn.parts if isinstance(part, CallPart)] if turn is not None else []


def _speaks(turn: TurnState) -> bool:
    """Return whether the answer has started. A waiter is notified when a part starts, not of each delta."""
    return any(isinstance(part, TextPart) and part.kind == "text" for part in turn.parts)


def _said(turn: TurnState, kind: str = "text") -> str:
    return "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == kind)


def _why(turn: TurnState) -> str:
    if turn.error is not None:
        return turn.error.message
    return f"it said: {_said(turn).strip()[:120]!r}"


def _judged(ok: bool, detail: str) -> MatrixCell:
    return MatrixCell("yes" if ok else "no", detail)


async def _note(arguments: Json, call: Call) -> ToolResult:
    return ToolResult(True, f"noted: {arguments.get('argument')}")


_NOTE = Tool(
    ToolSpec(
        TOOL,
        "Takes a note; for a test of this agent.",
        {"type": "object", "properties": {"argument": {"type": "string"}}, "required": ["argument"]},
    ),
    _note,
)
