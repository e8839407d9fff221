"""The draft of a conversation: a text that stands in the input of every page and editor until a person sends it.

It is a fact that clients share (`client.kept`) in the form of AHP's messages: editors change it with every key.
Programs put one there with the command `draft.set`; such a draft is marked as an offer, so that pages fill their input
with it and not with what somebody is typing in an editor. An offer never replaces typed words: it follows them.
"""

from portico.events import Json
from portico.host.state import SessionState

DRAFT = "draft"
"""Its key among what clients share."""
OFFERED = "portico.offered"
"""What marks a draft that a program put there."""
TYPED = "portico.typed"
"""The typed words that an offer follows; the next offer follows them too, and replaces the one before."""


def offered_text(value: Json | None) -> str:
    """The text of a draft that a program offers; empty without one."""
    if value is None or not isinstance(value.get("_meta"), dict) or not value["_meta"].get(OFFERED):
        return ""
    return str(value.get("text", ""))


def offered_draft(state: SessionState) -> str:
    return offered_text(state.client_data.get(DRAFT))


def typed_text(value: Json | None) -> str:
    """What somebody has typed, without the offer that follows it."""
    if value is None:
        return ""
    meta = value.get("_meta")
    if isinstance(meta, dict) and meta.get(OFFERED):
        return str(meta.get(TYPED, ""))
    return str(value.get("text", ""))


def offer(text: str, before: Json | None) -> Json:
    typed = typed_text(before)
    whole = f"{typed}\n{text}" if typed.strip() and text not in typed else typed or text
    meta: Json = {OFFERED: True, **({TYPED: typed} if typed else {})}
    return {"text": whole, "origin": {"kind": "user"}, "_meta": meta}
