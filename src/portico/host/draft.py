"""The draft of a conversation: a text that stands in the input of every page and editor until a person sends it.

It is a fact that clients share (`client.kept`) in the form of AHP's messages: editors change it with every key.
Programs put one there with `set_draft`; such a draft is marked, so that pages fill their input with it and not with
what somebody is typing in an editor.
"""

from typing import TYPE_CHECKING

from portico.events import Json, Message
from portico.host.state import SessionState

if TYPE_CHECKING:
    from portico.host.session import Session

DRAFT = "draft"
"""Its key among what clients share."""
_OFFERED = {"portico.offered": True}


async def set_draft(session: "Session", text: str, *, by: str) -> None:
    """Puts the text into every input; an empty one takes the draft away."""
    from portico.host.session import check_message

    session.check_open()
    if text:
        check_message(Message(text), blank=True)
    elif DRAFT not in session.state.client_data:
        return
    value: Json | None = {"text": text, "origin": {"kind": "user"}, "_meta": _OFFERED} if text else None
    await session.keep(DRAFT, value, by=by)


def offered_text(value: Json | None) -> str:
    """The text of a draft that a program offers; empty without one."""
    if value is None or not isinstance(value.get("_meta"), dict) or not value["_meta"].get("portico.offered"):
        return ""
    return str(value.get("text", ""))


def offered_draft(state: SessionState) -> str:
    return offered_text(state.client_data.get(DRAFT))
