"""One entrance to all reducers: `reduce(channel, state, action, dialect)`."""

from typing import Literal

from portico.doors.ahp.act import annotations
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp import automation, changeset, chat, root, session, terminal, v1
from portico.testing.ahp.record import Handler

Channel = Literal[
    "root",
    "session",
    "chat",
    "terminal",
    "changeset",
    "annotations",
    "resourceWatch",
    "automation",
    "automationRun",
]

SEED_CHANNELS: dict[str, dict[str, Handler]] = {
    "root": root.HANDLERS,
    "session": v1.HANDLERS,
    "terminal": terminal.HANDLERS,
}

CHANNELS: dict[str, dict[str, Handler]] = {
    "root": root.HANDLERS,
    "session": session.HANDLERS,
    "chat": chat.HANDLERS,
    "terminal": terminal.HANDLERS,
    "changeset": changeset.HANDLERS,
    "annotations": annotations.HANDLERS,
    "resourceWatch": {},
    "automation": automation.HANDLERS,
    "automationRun": automation.RUN_HANDLERS,
}


def reduce(channel: Channel, state: Json, action: Json, dialect: Dialect) -> Json:
    """The state after `action`. Neither argument is changed; an action we do not know returns `state` itself."""
    handler = (SEED_CHANNELS if dialect.seed else CHANNELS).get(channel, {}).get(str(action.get("type")))
    return state if handler is None else handler(state, action, dialect)
