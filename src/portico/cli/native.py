"""`portico sessions found`, `adopt` and `native`: sessions that were started in an agent's own program."""

import os
import sys
from typing import Annotated

import typer

from portico.cli.output import JsonFlag, SessionArgument, plain, print_json, print_table, when
from portico.cli.verb import connected
from portico.client import Client
from portico.features.native.commands import FoundPage, FoundSession
from portico.kernel.errors import BadRequest, NotFound

AgentOption = Annotated[str | None, typer.Option("--agent", "-a", help="Only sessions of this agent. [all agents]")]
FolderOption = Annotated[str | None, typer.Option("--cwd", help="Only sessions of this folder. [all folders]")]


@connected
async def found(
    client: Client,
    agent: AgentOption = None,
    cwd: FolderOption = None,
    everything: Annotated[bool, typer.Option("--all", help="All pages, not only the first of each agent.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Sessions that were started in an agent's own program. Starts the installed agents to ask them.

    Example: portico sessions found --cwd .
    """
    pages = (await client.find_sessions(agent=agent, cwd=_folder(cwd))).agents
    if everything:
        pages = [await _whole(client, page, _folder(cwd)) for page in pages]
    if as_json:
        print_json({"agents": pages})
        return
    rows = [
        [each.id, each.agent, "open elsewhere" if each.open else when(each.updated), each.cwd, plain(each.title)]
        for each in sorted((each for page in pages for each in page.sessions), key=_changed, reverse=True)
    ]
    empty = "No sessions were found. Those that this host knows are in: portico sessions list"
    print_table(["id", "agent", "changed", "folder", "title"], rows, empty)
    for page in pages:
        if page.problem:
            print(f"{page.agent}: {page.problem}", file=sys.stderr)
        elif page.next is not None:
            print(f"{page.agent} has more sessions; --all shows them.", file=sys.stderr)


async def _whole(client: Client, page: FoundPage, cwd: str | None) -> FoundPage:
    sessions, cursor = list(page.sessions), page.next
    while cursor is not None:
        (more,) = (await client.find_sessions(agent=page.agent, cwd=cwd, cursor=cursor)).agents
        sessions, cursor = [*sessions, *more.sessions], more.next if more.next != cursor else None
    return FoundPage(page.agent, sessions, None, page.problem)


def _changed(of: FoundSession) -> int:
    return of.updated


@connected
async def adopt(
    client: Client,
    native: Annotated[str, typer.Argument(metavar="ID", help="As `portico sessions found` lists it.")],
    agent: AgentOption = None,
    cwd: FolderOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Adopt it even if it is open elsewhere.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Adopt a session that was started in an agent's own program, and continue it here.

    Example: portico sessions adopt 350ccf1e-b41f-42a4-8b0f-32d9440feda8
    """
    agent, folder = (agent, _folder(cwd)) if agent is not None else await _search(client, native, _folder(cwd))
    session = await client.adopt_session(agent, native, cwd=folder or "", confirm=yes)
    print_json({"session": session.id, "turns": session.turns}) if as_json else print(session.id)


async def _search(client: Client, native: str, cwd: str | None) -> tuple[str, str | None]:
    """Which agent has it, and its folder."""
    for page in (await client.find_sessions(cwd=cwd)).agents:
        whole = await _whole(client, page, cwd)
        if found := next((each for each in whole.sessions if each.id == native), None):
            return found.agent, found.cwd
    for summary in await client.sessions(limit=10_000):
        if summary.vendor == native:
            return summary.agent, summary.cwd  # adopted before
    raise NotFound("session", native, "`portico sessions found` lists those that can be adopted.")


@connected
async def in_terminal(client: Client, session: SessionArgument, as_json: JsonFlag = False) -> None:
    """The command that continues a session in the agent's own program. Its new messages are imported later.

    Example: portico sessions native session-1
    """
    line = await client.continue_in_terminal(session)
    print_json(line) if as_json else print(line.command)


def _folder(cwd: str | None) -> str | None:
    if cwd is None:
        return None
    folder = os.path.realpath(os.path.expanduser(cwd))
    if not os.path.isdir(folder):
        raise BadRequest(f"{cwd!r} is not a folder.", field="cwd")
    return folder
