"""A session as a document: Markdown to read, HTML to print, JSON Lines to process."""

from portico.doors.rest.events import wire
from portico.features.sandboxes.shapes import HostUse, NetworkUse
from portico.features.transcripts.document import markdown
from portico.kernel import limits
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.markdown import escape_line

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


def _hosts(network: NetworkUse) -> list[str]:
    """The connections from the sandbox, as a table."""
    if not network.hosts:
        return []
    head = [
        "## Network",
        "",
        "| host | connections | refused or failed | sent | received | allowed by |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *(_host(use) for use in network.hosts), ""]


def _host(use: HostUse) -> str:
    name = "other hosts" if use.host == "*" else f"`{use.host}:{use.port}`"
    by = escape_line(", ".join(use.allowed_by))
    return f"| {name} | {use.count} | {use.refused} | {use.sent} | {use.received} | {by} |"


def _page(title: str, text: str) -> str:
    """Wrap the escaped Markdown in HTML: an export must be as safe as plain text."""
    import html  # late import: rarely needed

    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<body><pre>{html.escape(text)}</pre></body></html>"
    )
