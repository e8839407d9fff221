"""`portico sessions`: what is stored, and what happens in it."""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer
from msgspec import UNSET

from portico.cli import native
from portico.cli.network import print_hosts
from portico.cli.output import HomeOption, JsonFlag, SessionArgument, plain, print_json, print_table, run, trouble, when
from portico.cli.send import answering, watch
from portico.cli.show import Printer
from portico.cli.verb import connected
from portico.client import Client
from portico.kernel.errors import BadRequest
from portico.kernel.events import Right
from portico.kernel.state import CallPart, ChangeList, FileChange, QuestionPart, SessionState
from portico.redaction import Redaction, redacted

app = typer.Typer(help="List, show, follow, resume, adopt, export, import and delete sessions.", no_args_is_help=True)
app.command("found")(native.found)
app.command("adopt")(native.adopt)
app.command("native")(native.in_terminal)


@app.command("list")
@connected
async def list_sessions(
    client: Client,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived ones.")] = False,
    limit: Annotated[int, typer.Option(help="At most so many.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """All sessions, newest first.

    Example: portico sessions list --limit 10
    """
    found = await client.sessions(archived=archived, limit=limit)
    if as_json:
        print_json(found)
        return
    rows = [
        [s.id, status_of(s.status, s.interrupted, bool(s.stopped)), s.agent, s.model, when(s.modified), plain(s.title)]
        for s in found
    ]
    print_table(
        ["id", "status", "agent", "model", "changed", "title"], rows, "No sessions yet. Try: portico send hello"
    )


@app.command()
@connected
async def show(
    client: Client,
    session: SessionArgument,
    network: Annotated[bool, typer.Option("--network", help="Only the hosts that it connected to.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """A session with all its turns, or the hosts that it connected to from its sandbox.

    Example: portico sessions show session-1 --network
    """
    if network:
        used = await client.session(session).network()
        print_json(used) if as_json else print_hosts(used.hosts)
        return
    state = await client.session(session).state()
    print_json(state) if as_json else print(_text(state))


@app.command()
@connected
async def tail(
    client: Client,
    session: SessionArgument,
    after: Annotated[int, typer.Option(help="Only events behind this position.")] = 0,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", "-f", help="Go on with new events.")] = True,
    as_json: JsonFlag = False,
) -> None:
    """Follow a session from any position. Reconnects when the host restarts.

    Example: portico sessions tail session-1 --after 100
    """
    remote = client.session(session)
    head = await remote.head()
    client.on_trouble = trouble
    printer = Printer(as_json)
    if not follow and after >= head:
        return
    async with aclosing(remote.follow(after)) as records:
        async for record in records:
            printer.show(record)
            if not follow and record.pos >= head:
                break
    printer.done()


@app.command()
@connected
async def resume(
    client: Client,
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Allow every approval of this turn.")] = False,
    no: Annotated[bool, typer.Option("--no", help="Deny every approval of this turn.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Resume the last turn, if it failed or was interrupted, and watch it. Ctrl-C cancels it.

    Example: portico sessions resume session-1
    """
    policy = answering(yes, no)
    remote = client.session(session)
    raise typer.Exit(await watch(client, remote, remote.resumed(), policy, as_json))


@app.command()
@connected
async def changes(
    client: Client,
    session: SessionArgument,
    turn: Annotated[str | None, typer.Option(help="Only what this turn changed.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="The lines as well.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """The files that a session's turns changed in its folder. Needs git there.

    Example: portico sessions changes session-1 --diff
    """
    remote = client.session(session)
    found = await remote.changes(turn)
    text = await remote.diff(turn=turn) if diff and found.files else ""
    if as_json:
        print_json({**msgspec.to_builtins(found), **({"diff": text} if diff else {})})
        return
    rows = [[each.status, f"+{each.added} -{each.removed}", _paths(each)] for each in found.files]
    print_table(["status", "lines", "path"], rows, _nothing(found))
    if text:
        print(plain(text), end="")


def _paths(of: FileChange) -> str:
    return plain(of.path if of.old_path is UNSET else f"{of.old_path} -> {of.path}")


def _nothing(of: ChangeList) -> str:
    if not of.git:
        return "The session's folder is not in a git repository. Run 'git init' there to see what changes."
    return "Nothing was changed." if of.note is UNSET else str(of.note)


@app.command()
def export(
    session: SessionArgument,
    form: Annotated[str, typer.Option("--format", help="markdown, html, jsonl or archive.")] = "markdown",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of the screen.")] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Take known kinds of keys and your home folder's path out of every text.")
    ] = False,
    hide: Annotated[list[str] | None, typer.Option(help="Take this text out as well; repeatable.")] = None,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """A session as a document.

    Example: portico sessions export session-1 --format html -o session.html
    """

    async def work() -> None:
        async with Client.local(home) as client:
            data = await _document(client, session, form, redact or bool(hide), hide or [])
        if output is None:
            text = data.decode()
            print_json({"session": session, "format": form, "text": text}) if as_json else print(plain(text))
            return
        try:
            await asyncio.to_thread(output.write_bytes, data)
        except OSError as error:
            raise BadRequest(f"{str(output)!r} cannot be written: {error.strerror}.", field="output") from error
        if as_json:
            print_json({"session": session, "format": form, "path": str(output), "bytes": len(data)})
        else:
            print(f"Wrote {output}", file=sys.stderr)

    run(work())


async def _document(client: Client, session: str, form: str, redact: bool, hide: list[str]) -> bytes:
    remote = client.session(session)
    redaction = Redaction([*hide, str(Path.home())])
    if form == "archive":
        archive = await remote.archive()
        return msgspec.json.encode(redacted(archive, redaction) if redact else archive)
    data = await remote.export(form)
    if not redact:
        return data
    if form != "jsonl":
        return redaction.text(data.decode()).encode()
    lines = [msgspec.json.encode(redaction.document(msgspec.json.decode(line))) for line in data.splitlines()]
    return b"".join(line + b"\n" for line in lines)


@app.command("import")
@connected
async def import_session(
    client: Client,
    file: Annotated[Path, typer.Argument(help="A file of `portico sessions export --format archive`.")],
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Who goes on with it. [as it was]")] = None,
    cwd: Annotated[str | None, typer.Option(help="The working directory. [the host's first workspace]")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take in a session of another host, with its history and blobs, under a new id.

    Example: portico sessions import session.portico --cwd ~/code/project
    """
    folder = os.path.join(os.getcwd(), cwd) if cwd is not None else None
    ident = await client.import_session(_read_archive(file), agent=agent, cwd=folder)
    print_json({"session": ident}) if as_json else print(ident)


def _read_archive(file: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise BadRequest(f"{str(file)!r} cannot be read: {error.strerror}.", field="file") from error
    except msgspec.DecodeError as error:
        raise BadRequest(f"{str(file)!r} is no archive of a session: {error}.", field="file") from error


@app.command()
def delete(
    session: Annotated[list[str], typer.Argument(help="One or more.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Delete sessions with their history and their children. This cannot be undone.

    Example: portico sessions delete session-1 session-2 --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise BadRequest("Nobody is here to be asked. Say --yes if it is meant.", field="yes")
        typer.confirm(f"Delete {', '.join(session)} for good?", abort=True)

    async def work() -> None:
        async with Client.local(home) as client:
            kept: dict[str, str] = {}
            for each in session:
                stays = await client.session(each).delete()
                kept |= {each: stays} if stays else {}
                if not as_json:
                    print(f"Deleted {each}{f'. {plain(stays)}' if stays else ''}", file=sys.stderr)
        if as_json:
            print_json({"deleted": session, **({"kept": kept} if kept else {})})

    run(work())


@app.command()
@connected
async def share(
    client: Client,
    session: SessionArgument,
    person: Annotated[str, typer.Argument(help="A name, or '*' for everybody.")],
    right: Annotated[list[str] | None, typer.Option(help="read, drive or approve; repeatable. [read]")] = None,
    off: Annotated[bool, typer.Option("--off", help="Take back what they were allowed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let another person read, drive or approve in a session of yours.

    Example: portico sessions share session-1 ben@example.org --right drive
    """
    for wrong in set(right or ()) - set(get_args(Right)):
        raise BadRequest(f"There is no right {wrong!r}; choose from {', '.join(get_args(Right))}.", field="right")
    body: dict[str, Any] = {"person": person} | ({} if off else {"rights": right or ["read"]})
    path = f"{client.session(session).path}/{'unshare' if off else 'share'}"
    summary = msgspec.json.decode(await client.call("POST", path, body))
    shares: dict[str, list[str]] = summary.get("shares", {})
    if as_json:
        print_json({"session": session, "shares": shares})
        return
    words = "; ".join(f"{name}: {', '.join(rights)}" for name, rights in shares.items())
    print(f"{session} is shared with {plain(words) or 'nobody'}", file=sys.stderr)


def _text(state: SessionState) -> str:
    status = status_of(state.status, state.last_outcome == "interrupted", state.last_outcome == "cancelled")
    lines = [f"{state.id}  {state.title}", f"{state.agent} {state.model}  {state.cwd}  {status}", ""]
    for turn in state.turns:
        lines.append(f"> {turn.message.text}")
        for part in turn.parts:
            if isinstance(part, CallPart):
                lines.append(f"[{part.title or part.tool}: {part.outcome or 'running'}]")
            elif isinstance(part, QuestionPart):
                lines.append(f"? {part.text} ({part.response or 'open'})")
            elif part.kind == "text":
                lines.append(part.text)
        ending = turn.outcome or "running"
        lines += [f"-- {ending}" + (f": {turn.error.message}" if turn.error else ""), ""]
    for pending in state.queue:
        lines.append(f"queued: {pending.message.text}")
    return plain("\n".join(lines))


def status_of(status: str, interrupted: bool, stopped: bool = False) -> str:
    """An idle session also reports how its last turn ended; `portico sessions resume` resumes an interrupted one."""
    return status if status != "idle" else "interrupted" if interrupted else "stopped" if stopped else status
