"""The draft of a conversation: a text that stands in the input of every page and editor until a person sends it.

It is a fact that clients share (`client.kept`) in the form of editors' messages: they change it with every key.
Programs put one there with the command `draft.set`; such a draft is marked, so that pages fill their input with it
and not with what somebody is typing in an editor.
"""

from portico.events import Json
from portico.host.state import SessionState

DRAFT = "draft"
"""Its key among what clients share."""
OFFERED = "portico.offered"
"""What marks a draft that a program put there."""


def offered_text(value: Json | None) -> str:
    """The text of a draft that a program offers; empty without one."""
    if value is None or not isinstance(value.get("_meta"), dict) or not value["_meta"].get(OFFERED):
        return ""
    return str(value.get("text", ""))


def offered_draft(state: SessionState) -> str:
    return offered_text(state.client_data.get(DRAFT))
