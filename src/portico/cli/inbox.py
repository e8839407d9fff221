"""`portico inbox`: what waits for a person, and the answers to it."""

import sys
from typing import Annotated, get_args

import msgspec
import typer
from msgspec import Struct

from portico.cli.output import JsonFlag, plain, print_json, print_table, when
from portico.cli.verb import connected
from portico.client import Client
from portico.features.board.board import InterruptedSession, PendingRequest
from portico.features.budgets.commands import UnansweredBudget
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import Breadth

app = typer.Typer(help="List and answer what waits for a person.", invoke_without_command=True)

RequestArgument = Annotated[str, typer.Argument(help="The id of an approval, a question or a budget, as listed.")]


class _Job(Struct):
    """One that waits for a person to resume it."""

    job: str
    name: str
    reason: str
    started: int


class _Inbox(Struct):
    waiting: list[PendingRequest]
    interrupted: list[InterruptedSession] = []
    jobs: list[_Job] = []
    budgets: list[UnansweredBudget] = []


@app.callback()
def _group(context: typer.Context) -> None:
    """Without a verb: the list."""
    if context.invoked_subcommand is None:
        list_requests()


async def _read(client: Client) -> _Inbox:
    return msgspec.json.decode(await client.call("GET", "/v1/inbox"), type=_Inbox)


@app.command("list")
@connected
async def list_requests(client: Client, as_json: JsonFlag = False) -> None:
    """List approvals and questions that wait, oldest first, and interrupted sessions.

    Example: portico inbox list
    """
    found = await _read(client)
    if as_json:
        print_json(
            {"inbox": found.waiting, "interrupted": found.interrupted, "jobs": found.jobs, "budgets": found.budgets}
        )
        return
    rows = [
        [each.id, "question" if each.question else "approval", when(each.since), plain(each.text), plain(each.title)]
        for each in found.waiting
    ]
    rows += [
        [each.session, "interrupted", when(each.since), f"portico sessions resume {each.session}", plain(each.title)]
        for each in found.interrupted
    ]
    rows += [[each.job, "job", when(each.started), plain(each.reason), plain(each.name)] for each in found.jobs]
    rows += [[each.budget, "budget", when(each.since), plain(each.text), each.session] for each in found.budgets]
    print_table(["id", "kind", "since", "about", "session"], rows, "You're all caught up.")
    if found.waiting or found.budgets:
        print("Answer with: portico inbox allow ID, deny ID, or answer ID TEXT", file=sys.stderr)


@app.command()
@connected
async def show(client: Client, request: RequestArgument, as_json: JsonFlag = False) -> None:
    """Show exactly what an approval would allow, or what a question asks.

    Example: portico inbox show session-1.a4
    """
    found = await _find(client, request)
    if as_json:
        print_json(found)
        return
    lines = [f"{found.text}", f"{found.agent} in {found.cwd} ({found.session} {found.title})"]
    if found.approval is not None:
        approval = found.approval
        details = (approval.command, approval.path, approval.diff or (None if approval.command else approval.input))
        lines += [each for each in (*details, approval.why) if each]
    if found.question is not None:
        options = [option for field in found.question.fields for option in field.get("options", [])]
        lines += [found.question.text, *(f"  {each.get('label', each.get('id'))}" for each in options)]
    print(plain("\n".join(lines)))


@app.command()
@connected
async def allow(
    client: Client,
    request: RequestArgument,
    remember: Annotated[
        str, typer.Option(help="Also allow it later in this session: shown, folder or all. Empty: once.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Allow what an approval shows, once or for the rest of the session.

    Example: portico inbox allow session-1.a4 --remember shown
    """
    if remember and remember not in get_args(Breadth):
        raise BadRequest(f"--remember takes one of: {', '.join(get_args(Breadth))}.", field="remember")
    found = await _find(client, request)
    _check_kind(found, "approval")
    if not remember:
        await client.approve(request, allow=True)
    else:
        options = found.approval.options if found.approval is not None else []
        option = next((each for each in options if each.allow and each.grant == "session"), None)
        if option is None:
            raise BadRequest("This approval cannot be remembered: leave out --remember.", field="remember")
        await client.call("POST", f"/v1/approvals/{request}", {"option": option.id, "covers": remember})
    _report(request, "allowed", as_json)


@app.command()
@connected
async def deny(
    client: Client,
    request: RequestArgument,
    reason: Annotated[str, typer.Option(help="A note to the agent.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Deny an approval, or decline a question.

    Example: portico inbox deny session-1.a4 --reason "Use another name"
    """
    found = await _find(client, request)
    if found.question is not None:
        await client.answer(request, None, "decline")
    else:
        body = {"allow": False} | ({"reason": reason} if reason else {})
        await client.call("POST", f"/v1/approvals/{request}", body)
    _report(request, "denied", as_json)


@app.command()
@connected
async def answer(
    client: Client,
    request: RequestArgument,
    text: Annotated[str, typer.Argument(help="The answer; of a choice, one of its options.")],
    as_json: JsonFlag = False,
) -> None:
    """Answer a question with a text, or the question about an exhausted budget with raise or stop.

    Example: portico inbox answer session-1.q2 "the second one"
    """
    if any(each.budget == request for each in (await _read(client)).budgets):
        await client.call("POST", "/v1/budgets/answer", {"budget": request, "answer": text})
    else:
        _check_kind(await _find(client, request), "question")
        await client.answer(request, text)
    _report(request, "answered", as_json)


async def _find(client: Client, request: str) -> PendingRequest:
    waiting = (await _read(client)).waiting
    found = next((each for each in waiting if each.id == request), None)
    if found is None:
        raise NotFound("request", request, "It was answered, or its turn ended. See: portico inbox list")
    return found


def _check_kind(found: PendingRequest, kind: str) -> None:
    if kind == "approval" and found.approval is None:
        raise BadRequest(f"{found.id!r} is a question. Use: portico inbox answer {found.id} TEXT", field="request")
    if kind == "question" and found.question is None:
        raise BadRequest(f"{found.id!r} is an approval. Use: portico inbox allow {found.id}", field="request")


def _report(request: str, outcome: str, as_json: bool) -> None:
    if as_json:
        print_json({"id": request, "outcome": outcome})
    else:
        print(f"{request}: {outcome}", file=sys.stderr)
