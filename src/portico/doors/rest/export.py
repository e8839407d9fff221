"""A session as a document: Markdown to read, HTML to print, JSON Lines to process."""

from datetime import UTC, datetime

from portico import limits
from portico.doors.rest.events import wire
from portico.host.host import Host
from portico.host.session import Session
from portico.host.state import CallPart, Part, QuestionPart, SessionState, TurnState
from portico.markdown import escape_line
from portico.sandboxes.shapes import HostUse, NetworkUse

FORMATS = {
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "html": ("text/html; charset=utf-8", "html"),
    "jsonl": ("application/jsonl; charset=utf-8", "jsonl"),
}


async def export(host: Host, session: Session, form: str, network: NetworkUse) -> bytes:
    if form == "jsonl":
        return await _lines(host, session)
    text = "\n".join([markdown(session.state), *_hosts(network)])
    return text.encode() if form == "markdown" else _page(session.state.title, text).encode()


async def _lines(host: Host, session: Session) -> bytes:
    lines: list[bytes] = []
    after = 0
    while True:
        records = await host.log.read(session.channel, after, limits.READ_EVENTS)
        if not records:
            return b"".join(lines)
        lines += [wire(record) + b"\n" for record in records]
        after = records[-1].pos


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


def _hosts(network: NetworkUse) -> list[str]:
    """The connections from the sandbox, as a table."""
    if not network.hosts:
        return []
    head = [
        "## Network",
        "",
        "| host | connections | refused | sent | received | allowed by |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *(_host(use) for use in network.hosts), ""]


def _host(use: HostUse) -> str:
    name = "other hosts" if use.host == "*" else f"`{use.host}:{use.port}`"
    by = escape_line(", ".join(use.allowed_by))
    return f"| {name} | {use.count} | {use.refused} | {use.sent} | {use.received} | {by} |"


def _fence(text: str) -> str:
    """Fence the text with more backticks than any run of backticks in it."""
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _page(title: str, text: str) -> str:
    """Wrap the escaped Markdown in HTML: an export must be as safe as plain text."""
    import html  # late import: rarely needed

    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<body><pre>{html.escape(text)}</pre></body></html>"
    )
