"""The turns of a session as Markdown, for exports and for models."""

from datetime import UTC, datetime

from portico.kernel.state import CallPart, Part, QuestionPart, SessionState, TurnState
from portico.markdown import escape_line


def markdown(state: SessionState) -> str:
    about = f"{escape_line(state.agent)} · {escape_line(state.model)} · {_when(state.created)}"
    head = [f"# {escape_line(state.title or state.id)}", "", about, ""]
    return "\n".join([*head, *(line for turn in state.turns for line in _turn(turn))])


def _turn(turn: TurnState) -> list[str]:
    lines = ["## User", "", turn.message.text, "", "## Agent", ""]
    for part in turn.parts:
        lines += [*_part(part), ""]
    if turn.outcome not in (None, "completed"):
        lines += [f"*{turn.outcome}*" + (f": {escape_line(turn.error.message)}" if turn.error else ""), ""]
    return lines


def _part(part: Part) -> list[str]:
    if isinstance(part, CallPart):
        result = part.output or (part.error.message if part.error else "")
        return [f"**{escape_line(part.title or part.tool)}**", "", _fence(part.input), "", _fence(result)]
    if isinstance(part, QuestionPart):
        answer = escape_line(f"{part.response or 'open'} {part.answers or ''}")
        return [f"> {escape_line(part.text)}", "", f"> {answer}"]
    if part.kind == "text":
        return [part.text]
    return ["\n".join(f"> {line}" for line in part.text.splitlines())]


def _fence(text: str) -> str:
    """Fence the text with more backticks than any run of backticks in it."""
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
