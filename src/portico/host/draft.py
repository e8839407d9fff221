"""What somebody writes to a session and has not sent: shared through the log, so that every device shows it."""

from portico import limits
from portico.errors import BadRequest
from portico.host.session import Session

DRAFT = "draft"
"""Its key among what clients share."""


async def keep_draft(session: Session, text: str, *, by: str) -> None:
    if len(text) > limits.DRAFT_CHARS:
        raise BadRequest(f"A draft has at most {limits.DRAFT_CHARS} characters.", field="text")
    if session.state.client_data.get(DRAFT, {}).get("text", "") != text:
        await session.keep(DRAFT, {"text": text} if text else None, by=by)
