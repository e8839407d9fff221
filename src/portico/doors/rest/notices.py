"""Notifications that were sent to people, and those that were not delivered."""

from typing import get_args

from msgspec import Struct
from starlette.requests import Request

from portico.features.notices.notice import Delivery, State
from portico.features.notices.notices import Notices
from portico.features.notices.push import installed
from portico.kernel.errors import BadRequest
from portico.server.app import App
from portico.server.route import Param, Table, caller
from portico.server.routes import Routes
from portico.server.settings import NoticeKind


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
    read = Routes(app)
    state = Param("only those that are waiting, delivered, failed or unneeded", State)
    summary = "What people were told of by webhooks and commands, and what waits or was given up."

    @read("/v1/notices", "read", summary, query={"state": state})
    async def notices(request: Request) -> NoticeList:
        wanted = request.query_params.get("state")
        if wanted is not None and wanted not in get_args(State):
            raise BadRequest(f"'state' is one of {', '.join(get_args(State))}, not {wanted!r}.", field="state")
        visible = app.features[Notices].visible(caller(request))
        found = [each for each in visible if wanted in (None, each.state)]
        return NoticeList(found[::-1])

    @read("/v1/push", "read", "The key for web push, and your browsers.")
    async def push(request: Request) -> PushList:
        subscriptions = app.features[Notices].subscriptions
        if not installed():
            return PushList("", [])
        shown = [
            PushShown(each.name, each.device, each.by, each.created, list(each.kinds), each.sessions, each.quiet)
            for each in subscriptions.mine(caller(request))
        ]
        return PushList(await subscriptions.public_key(), shown)

    return read.table
