"""The four tools with which an agent reports to a task, and the report that a task reads from a turn.

An agent that supports tools calls them. Other agents write a separate line instead, `@job_boolean_true the reason`; the
prompt explains this. In both cases the tools only report: they do not approve, start or change anything.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from portico.features.jobs.entry import (
    JOB_TOOLS,
    TOOL_FALSE,
    TOOL_PREPARE_DOCUMENT,
    TOOL_PREREQUISITE_FAILED,
    TOOL_TRUE,
)
from portico.kernel.call import Call
from portico.kernel.events import Json, ToolSpec
from portico.kernel.session import Session
from portico.kernel.state import CallPart, SessionState, TextPart, TurnState
from portico.kernel.tool import Tool, ToolResult

DESCRIPTIONS = {
    TOOL_PREPARE_DOCUMENT: "Report the absolute path of a document that you are about to create or update.",
    TOOL_TRUE: "Report that the condition you were asked about holds; the argument is the reason.",
    TOOL_FALSE: "Report that the condition you were asked about does not hold; the argument is the reason.",
    TOOL_PREREQUISITE_FAILED: "Report that a prerequisite of the task is not met; the argument is the reason.",
}
_ARGUMENT: Json = {
    "type": "object",
    "properties": {"argument": {"type": "string"}},
    "required": ["argument"],
}
_LINE = re.compile(rf"^[ \t]*@({'|'.join(JOB_TOOLS)})\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)


_LENT = "jobs/tools"
LENT: dict[str, Json] = {_LENT: {}}
"""Shared data that marks a session with the tools that was not opened by a task."""


def job_tools() -> dict[str, Tool]:
    return {name: Tool(ToolSpec(name, text, _ARGUMENT), _report, _offered) for name, text in DESCRIPTIONS.items()}


def _offered(state: SessionState) -> bool:
    """Only in sessions of tasks: anywhere else they cost tokens and confuse the model."""
    return state.by.startswith("task:") or _LENT in state.client_data


async def lend_tools(session: Session, by: str) -> None:
    """Add the tools to a session that a task did not open but borrows, now or later."""
    if not _offered(session.state):
        await session.keep(_LENT, {}, by=by)
        session.runner.refresh()


async def _report(arguments: Json, call: Call) -> ToolResult:
    """Return the arguments to the agent. The logged call itself is the report."""
    return ToolResult(True, argument_of(call.input))


def in_words(prompt: str) -> str:
    """The prompt for an agent that takes no tools: how to report in text."""
    lines = [f"@{name} <argument>: {text}" for name, text in DESCRIPTIONS.items()]
    return "\n".join(
        (prompt, "", "You have no tools named job_...; instead of calling one, write a line of its own:", *lines)
    )


class Report(Struct):
    """What a task learns from one turn."""

    tools: list[str]
    """The names of all tools called, the agent's own included."""
    document: str | None = None
    verdict: bool | None = None
    """The last boolean report."""
    reason: str = ""
    prerequisite_failed: bool = False
    answer: str = ""
    """The last text of the agent."""


def report_of(turn: TurnState, takes_tools: bool) -> Report:
    calls = list(_calls(turn) if takes_tools else _lines(turn))
    report = Report([name for name, _ in calls], answer=_answer(turn))
    for name, argument in calls:
        if name == TOOL_PREPARE_DOCUMENT:
            report.document = argument.partition("\n")[0].strip()
        elif name in (TOOL_TRUE, TOOL_FALSE):
            report.verdict, report.reason = name == TOOL_TRUE, argument
        elif name == TOOL_PREREQUISITE_FAILED:
            report.prerequisite_failed = True
    return report


def _answer(turn: TurnState) -> str:
    texts = (part.text for part in reversed(turn.parts) if isinstance(part, TextPart) and part.kind == "text")
    return next((text for text in texts if text.strip()), "")


def says_prerequisite_failed(turn: TurnState) -> bool:
    return any(isinstance(part, CallPart) and _plain(part.tool) == TOOL_PREREQUISITE_FAILED for part in turn.parts)


def _calls(turn: TurnState) -> Iterator[tuple[str, str]]:
    for part in turn.parts:
        if isinstance(part, CallPart):
            yield _plain(part.tool), argument_of(part.input)


def _plain(tool: str) -> str:
    """Agents that get our tools through a server of tools put its name in front (`portico-job_boolean_true`)."""
    return next((name for name in JOB_TOOLS if tool.endswith(name)), tool)


def _lines(turn: TurnState) -> Iterable[tuple[str, str]]:
    text = "\n".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
    own = [part.tool for part in turn.parts if isinstance(part, CallPart)]
    return [*((name, "") for name in own), *((match[1], match[2]) for match in _LINE.finditer(text))]


def argument_of(text: str) -> str:
    """The first text among the arguments, else their JSON."""
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (ValueError, RecursionError):
        return text
    if isinstance(arguments, dict):
        for value in arguments.values():
            if isinstance(value, str):
                return value
    return text
