"""`portico send`: one message, streamed; approvals and questions are asked inline."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import typer

from portico.cli.ask import Asker
from portico.cli.output import HomeOption, JsonFlag, dollars, print_json, run, trouble
from portico.cli.show import Printer
from portico.client import Client, RemoteRecord, RemoteSession
from portico.kernel import events as e
from portico.kernel.errors import BadRequest, PorticoError, Unreachable
from portico.kernel.events import Json


def send(
    text: Annotated[str, typer.Argument(help="The message; '-' reads standard input.")],
    session: Annotated[str | None, typer.Option("--session", "-s", help="Go on with this session.")] = None,
    last: Annotated[bool, typer.Option("--last", "-l", help="Go on with the newest session.")] = False,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-a", help="The agent of a new session; more of them take over when it cannot answer."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model.")] = None,
    cwd: Annotated[str | None, typer.Option(help="The working directory of a new session. [current]")] = None,
    worktree: Annotated[bool, typer.Option("--worktree", help="A git worktree for the new session.")] = False,
    base: Annotated[str | None, typer.Option(help="Where the worktree starts. [HEAD]")] = None,
    budget: Annotated[
        float | None,
        typer.Option(parser=dollars, help="Dollars that a new session may cost; then a person is asked."),
    ] = None,
    sandbox: Annotated[
        str | None, typer.Option(help="Where a new session's processes run: off, project or strict.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Allow every approval of this message.")] = False,
    no: Annotated[bool, typer.Option("--no", help="Deny every approval of this message.")] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Send and leave; prints the session's id.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Send one message and watch the answer. Ctrl-C cancels the turn.

    Example: portico send "write a haiku into haiku.txt"
    """
    answering(yes, no)
    if worktree and (session is not None or last):
        raise BadRequest("--worktree is for a new session; leave out --session and --last.", field="worktree")
    if base is not None and not worktree:
        raise BadRequest("--base says where a worktree starts; add --worktree.", field="base")
    if budget is not None and (session is not None or last):
        raise BadRequest("--budget is for a new session; leave out --session and --last.", field="budget")
    if sandbox is not None and (session is not None or last):
        raise BadRequest("--sandbox is for a new session; leave out --session and --last.", field="sandbox")
    message = _text(text)
    own: Json = {"budget": {"dollars": budget}} if budget is not None else {}
    own |= {"sandbox": sandbox} if sandbox is not None else {}
    isolation: bool | Json = {"base": base} if base is not None else worktree
    folder = os.path.abspath(cwd or os.curdir)

    async def work() -> int:
        async with Client.local(home) as client:
            remote = await _session(client, session, last, agent or [], model, folder, isolation, own)
            if detach:
                await remote.post(message, model=model)
                print_json({"session": remote.id}) if as_json else print(remote.id)
                return 0
            if session is None and not last and not as_json:
                print(f"{remote.id}", file=sys.stderr)
            return await watch(client, remote, remote.send(message, model=model), answering(yes, no), as_json)

    raise typer.Exit(run(work()))


def _text(given: str) -> str:
    """The message, checked before a session is made for it."""
    try:
        text = (sys.stdin.read() if given == "-" else given).encode().decode()
    except UnicodeError:
        raise BadRequest("The message is not UTF-8.", field="text") from None
    if not text.strip():
        raise BadRequest("A message needs some text.", field="text")
    return text


async def _session(
    client: Client,
    ident: str | None,
    last: bool,
    agents: list[str],
    model: str | None,
    cwd: str,
    worktree: bool | Json,
    config: Json,
) -> RemoteSession:
    if ident is not None:
        return client.session(ident)
    if last:
        found = await client.sessions(limit=1, children=False)
        if not found:
            raise BadRequest("There is no session yet; leave out --last.", field="last")
        return client.session(found[0].id)
    first = None
    if agents:
        first, _, named = agents[0].partition("/")
        model = model or named or None
        config |= {"fallback": agents[1:]} if agents[1:] else {}
    return await client.start(agent=first, model=model, cwd=cwd, config=config or None, worktree=worktree)


def answering(yes: bool, no: bool) -> str:
    """What becomes of approvals: `allow`, `deny` or `ask`."""
    if yes and no:
        raise BadRequest("Say --yes or --no, not both.", field="yes")
    return "allow" if yes else "deny" if no else "ask"


async def watch(
    client: Client, remote: RemoteSession, turn: AsyncGenerator[RemoteRecord, None], policy: str, as_json: bool
) -> int:
    """Follow one turn until it ends; return exit code 0 if it completed."""
    client.on_trouble = trouble
    printer, asker = Printer(as_json, prompts=False), Asker(client, policy)
    outcome = "interrupted"
    try:
        async with aclosing(turn) as records:
            async for record in records:
                printer.show(record)
                asker.see(record.event)
                if isinstance(record.event, e.TurnEnded):
                    outcome = record.event.outcome
    except asyncio.CancelledError:
        await _cancel(remote)
        raise
    except Unreachable as error:
        resume = f"Start the host again, then resume this session: portico sessions resume {remote.id}"
        raise Unreachable(f"{error.message} {resume}") from error
    finally:
        await asker.close()
    printer.done()
    if outcome == "interrupted" and not as_json:
        print(
            f"portico: the host stopped in this turn. Resume it: portico sessions resume {remote.id}", file=sys.stderr
        )
    return 0 if outcome == "completed" else 1


async def _cancel(remote: RemoteSession) -> None:
    try:
        await remote.cancel()
        print("\ncancelled", file=sys.stderr)
    except PorticoError as error:
        print(f"\nnot cancelled: {error.message}", file=sys.stderr)
