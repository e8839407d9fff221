"""The draft of a conversation: the text in the input of every page and editor until a person sends it.

Clients share it (`client.kept`) in the format of editors' messages, and editors change it with every key. Programs set
a draft with the command `draft.set`. It is marked as an offer, so that pages fill their input with it, but not with
text that a person is typing in an editor. An offer never replaces typed text: it is appended.
"""

from portico.features.chats.commands import DraftText, SetDraft
from portico.kernel import events as e
from portico.kernel.decide.decision import Context, Outcome, check_open, set_column
from portico.kernel.decide.session import kept_data
from portico.kernel.decide.turn import check_message
from portico.kernel.events import Json, Message
from portico.kernel.state import DRAFT, SessionState

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


def set_draft(state: SessionState, command: SetDraft, context: Context) -> Outcome:
    check_open(state)
    before = state.client_data.get(DRAFT)
    if not command.text:
        cleared: list[e.Event] = [e.ClientKept(key=DRAFT, value=None, by=context.by)] if before is not None else []
        return Outcome(cleared, DraftText(""))
    typed: Json = {"text": command.text, "origin": {"kind": "user"}}
    value = typed if command.typed else offer(command.text, before)
    check_message(Message(value["text"]), blank=True)
    kept = kept_data(state, DRAFT, value, context)
    return Outcome([e.ClientKept(key=DRAFT, value=kept, by=context.by)], DraftText(value["text"]))


set_column("decide", set_draft)
