"""What people were told of, and what did not arrive."""

from typing import get_args

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Param, Route, Table, caller
from portico.errors import BadRequest
from portico.notices.notice import Delivery, State
from portico.notices.notices import Notices
from portico.notices.push import installed
from portico.settings import NoticeKind


class NoticeList(Struct):
    notices: list[Delivery]
    """Newest first."""


class PushShown(Struct, omit_defaults=True):
    push: str
    device: str
    by: str
    created: int
    kinds: list[NoticeKind] = []
    sessions: str = "all"
    quiet: str = ""


class PushList(Struct):
    key: str
    """The host's public key (VAPID), for `pushManager.subscribe`; empty: the host has no library for it."""
    subscriptions: list[PushShown]


def table(app: App) -> Table:
    async def notices(request: Request) -> Response:
        state = request.query_params.get("state")
        if state is not None and state not in get_args(State):
            raise BadRequest(f"'state' is one of {', '.join(get_args(State))}, not {state!r}.", field="state")
        view, deliveries = app.view(request), app.host.part(Notices).deliveries.values()
        found = [each for each in deliveries if state in (None, each.state) and view.sees(each.notice.channel)]
        return JsonResponse(NoticeList(found[::-1]))

    async def push(request: Request) -> Response:
        subscriptions = app.host.part(Notices).subscriptions
        if not installed():
            return JsonResponse(PushList("", []))
        shown = [
            PushShown(each.name, each.device, each.by, each.created, list(each.kinds), each.sessions, each.quiet)
            for each in subscriptions.mine(caller(request))
        ]
        return JsonResponse(PushList(await subscriptions.public_key(), shown))

    query = {"state": Param("only those that are waiting, delivered, failed or unneeded", State)}
    summary = "What people were told of by webhooks and commands, and what waits or was given up."
    return [
        Route("/v1/notices", notices, "read", summary=summary, doc={"answer": NoticeList, "query": {**query}}),
        Route("/v1/push", push, "read", summary="The key for web push, and your browsers.", doc={"answer": PushList}),
    ]
