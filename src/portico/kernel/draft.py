"""The draft of a conversation: the text in the input of every page and editor until a person sends it.

Clients share it (`client.kept`) in the format of editors' messages, and editors change it with every key. Programs set
a draft with the command `draft.set`. It is marked as an offer, so that pages fill their input with it, but not with
text that a person is typing in an editor. An offer never replaces typed text: it is appended.
"""

from portico.kernel.events import Json

DRAFT = "draft"
"""Its key in the data that clients share."""
OFFERED = "portico.offered"
"""Marks a draft that a program set."""
TYPED = "portico.typed"
"""The typed text before an offer. The next offer is appended to it too, and replaces the previous offer."""


def offered_text(value: Json | None) -> str:
    """Return the text of a draft that a program offers; empty if there is none."""
    if value is None or not isinstance(value.get("_meta"), dict) or not value["_meta"].get(OFFERED):
        return ""
    return str(value.get("text", ""))


def typed_text(value: Json | None) -> str:
    """Return the typed text, without the offer after it."""
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
