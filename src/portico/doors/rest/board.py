"""The live list of sessions over one WebSocket; and the inbox: requests that wait for a person."""

import asyncio
from functools import partial

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.websockets import WebSocket, WebSocketDisconnect

from portico import limits
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.features.board.answers import Answers, PastAnswers
from portico.features.board.board import Board, BoardRow, InterruptedSession, PendingRequest
from portico.features.budgets.commands import UnansweredBudget
from portico.features.people.view import View
from portico.kernel.errors import BadRequest
from portico.kernel.events import Breadth
from portico.server.app import App
from portico.server.exchange import exchange
from portico.server.read_forward import at_owner
from portico.server.route import Param, Socket, Table
from portico.server.routes import Routes


class BoardPage(Struct):
    version: int
    rows: list[BoardRow]
    older: int
    """Sessions that are not among the rows; ask with `?before=`."""
    before: int
    """What to ask with; 0: there are no older ones."""
    days: list[int]
    """How many rows the older ones will be, since each time of `?days=` and before them all."""
    archived: int
    """Sessions in the archive; ask with `?archived=true`."""


class WaitingJob(Struct):
    """A job that waits until a person resumes it (`onInterrupt: ask`): `POST /v1/jobs/{id}/resume`, or stop it."""

    job: str
    name: str
    cwd: str
    reason: str
    started: int


class Inbox(Struct):
    waiting: list[PendingRequest]
    interrupted: list[InterruptedSession]
    """Sessions whose turn ended with the host; resume them with `POST /v1/sessions/{id}/resume`."""
    jobs: list[WaitingJob] = []
    budgets: list[UnansweredBudget] = []
    """Exhausted budgets whose question no turn shows any more; answer with `POST /v1/budgets/answer`."""


class Covered(Struct):
    breadth: Breadth
    covers: list[str]
    """As in a grant; nothing: all that the tool does."""


class Coverage(Struct):
    covers: list[Covered]


def table(app: App) -> Table:
    host = app.host
    board, answers, read = app.features[Board], Answers(host), Routes(app)

    def page(asked: Request | WebSocket) -> BoardPage:
        view, days = app.view(asked), _days(asked)
        before = number(asked, "before", 0) if "before" in asked.query_params else None
        limit = number(asked, "limit", limits.BOARD_ROWS, 1, limits.BOARD_ROWS)
        words = asked.query_params.get("q", "").lower().split()
        found = board.page(view, limit, before, archived=flag(asked, "archived") or False, words=words)
        archived = len(view.list(archived=True))
        return BoardPage(board.version, found.rows, len(found.left), found.before, found.by_day(days), archived)

    query: dict[str, str | Param] = {
        "before": numbered("only those that changed before this time (ms)"),
        "limit": numbered(f"how many; {limits.BOARD_ROWS}", 1, limits.BOARD_ROWS),
        "archived": Param("`true`: those in the archive instead", Flag),
        "q": "only those whose title, agent, model, folder or id has all these words",
        "days": "times (ms), newest first, between which the older ones are counted",
    }

    @read("/v1/board", "read", "Sessions with what they do now.", query=query)
    async def listing(request: Request) -> BoardPage:
        return page(request)

    @read("/v1/inbox", "read", "All that waits for a person, oldest first, and what was interrupted.")
    async def inbox(request: Request) -> Inbox:
        view = app.view(request)
        jobs = [
            WaitingJob(each.id, each.name, each.cwd, each.reason, each.started)
            for each in view.jobs(app.jobs.history())
            if each.status == "waiting" and each.waits_for == "person"
        ]
        budgets = host.spending.unanswered(view.caller)
        return Inbox(board.inbox(view), board.interrupted(view), jobs, budgets)

    summary = "What was answered, newest first, and how often a rule did."

    @read("/v1/inbox/answered", "read", summary, query={"since": numbered("from this time on (ms); 0")})
    async def answered(request: Request) -> PastAnswers:
        return await answers.since(number(request, "since", 0), app.view(request))

    def session_of(request: Request) -> str:
        return app.view(request).session_of(request.path_params["id"])

    near, summary = partial(at_owner, session=session_of), "For what an answer to it can be remembered."

    @read("/v1/approvals/{id}/covers", "read", summary, near=near)
    async def coverage(request: Request) -> Coverage:
        session = await app.view(request).get(session_of(request))
        return Coverage([Covered(*each) for each in session.approvals.breadths(request.path_params["id"])])

    async def live(socket: WebSocket) -> None:
        first = page(socket)
        await socket.accept()
        await exchange(socket, _send_board(socket, first, board, app.view(socket)), _until_gone(socket))

    return [*read.table, Socket("/v1/board/socket", live, "read", "The same, live.")]


def _days(asked: Request | WebSocket) -> list[int]:
    times = [each for each in asked.query_params.get("days", "").split(",") if each]
    if len(times) > limits.BOARD_DAYS or not all(each.isdecimal() and len(each) <= 18 for each in times):
        raise BadRequest(f"'days' is at most {limits.BOARD_DAYS} times in milliseconds, with commas.", field="days")
    return sorted(map(int, times), reverse=True)


async def _send_board(socket: WebSocket, first: BoardPage, board: Board, view: View) -> None:
    await _send(socket, msgspec.json.encode(first))
    version, shown = first.version, {row.session.id for row in first.rows}
    while True:
        await board.wait(version)
        await asyncio.sleep(limits.BOARD_SECONDS)
        changed = board.since(version, view)
        version = changed.version
        if not view.whole:  # do not report the removal of sessions that the caller never saw
            changed.removed = [each for each in changed.removed if each in shown]
            shown |= {row.session.id for row in changed.rows}
        await _send(socket, msgspec.json.encode(changed))


async def _send(socket: WebSocket, frame: bytes) -> None:
    async with asyncio.timeout(limits.SEND_SECONDS):
        await socket.send_text(frame.decode())


async def _until_gone(socket: WebSocket) -> None:
    """Wait until the client disconnects. Its messages are ignored."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    except WebSocketDisconnect:
        return
