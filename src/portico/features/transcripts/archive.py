"""A session as one document that another host can take in: its finished turns, and the blobs they refer to.

The ids of the session and of everything asked in it are this host's own; in another host they name something else. So
an imported session gets a new id, and the ids of what was asked in it, or that begin with the old one, are renamed.
"""

import base64
import binascii
import hashlib
import math
from typing import Any

import msgspec
from msgspec import Struct

from portico.kernel import limits
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, QuestionPart, StepState, TurnState

FORMAT = 1
IMPORTED = "imported"
"""What the old session's id becomes in ids of approvals and questions: no session has this name."""

_TITLE_CHARS = 2_000
"""The title of a call: a command line that fills a screen. The input has the whole text."""


class Archive(Struct, forbid_unknown_fields=True):
    portico: int
    """The version of this form."""
    session: str
    agent: str
    model: str = ""
    title: str = ""
    cwd: str = ""
    turns: list[Json] = []
    blobs: dict[str, str] = {}
    """By SHA-256, in base64."""


async def export_archive(host: Host, session: Session) -> Archive:
    state = session.state
    ended = [turn for turn in state.turns if turn.outcome is not None]
    turns = [msgspec.to_builtins(turn) for turn in ended]
    blobs: dict[str, str] = {}
    for digest in sorted({each.blob for each in _referring(ended) if each.blob is not None}):
        data = await host.log.blob(digest)
        if data is not None:
            blobs[digest] = base64.b64encode(data).decode()
    return Archive(FORMAT, session.id, state.agent, state.model, state.title, state.cwd, turns, blobs)


async def import_archive(
    host: Host, archive: Archive, *, by: str, agent: str | None = None, cwd: str | None = None, owner: str = ""
) -> Session:
    """A new session with these turns. Without an agent the archive's, if it is here, else the default one."""
    if archive.portico != FORMAT:
        raise BadRequest(f"This archive has form {archive.portico}; this Portico knows {FORMAT}.", field="portico")
    renamed = rename(archive.turns, f"{archive.session}.", f"{IMPORTED}.")
    try:
        turns = msgspec.convert(renamed, list[TurnState])
    except msgspec.ValidationError as error:
        raise BadRequest(f"The turns of this archive are not valid: {error}.", field="turns") from error
    if any(turn.outcome is None for turn in turns):
        raise BadRequest("A turn of this archive has no end.", field="turns")
    _check(turns)
    for turn in turns:
        _settle(turn)
        _disown(turn)
        _bound(turn)
    for each in _referring(turns):
        each.blob = each.blob if each.blob in archive.blobs else None  # a hash alone gives no access
    for digest, text in archive.blobs.items():
        await host.log.put_blob(_blob(digest, text))
    here = archive.agent in host.agents and agent is None
    return await host.start(
        by=by,
        agent=archive.agent if here else agent,
        cwd=cwd,
        title=archive.title,
        history=turns,
        owner=owner,
    )


def _referring(turns: list[TurnState]) -> list[CallPart | StepState]:
    """What may refer to a blob."""
    calls = [part for turn in turns for part in turn.parts if isinstance(part, CallPart)]
    return [*calls, *(step for turn in turns for step in turn.steps)]


def _settle(turn: TurnState) -> None:
    """The attack: an archive shows an open card with the id of an approval of this host, and other words. So no card
    is open, and none has an id that something here answers to."""
    for part in turn.parts:
        if isinstance(part, QuestionPart):
            part.id = _renamed(part.id)
            part.response = part.response or "cancel"
        elif isinstance(part, CallPart):
            for approval in part.approvals:
                approval.id = _renamed(approval.id)
                approval.allowed, approval.answered = approval.answered and approval.allowed, True


def _check(turns: list[TurnState]) -> None:
    """The attack: two turns with one id, of which a client shows one and acts on the other; or a usage below zero,
    which takes back what a budget has counted."""
    if len({turn.id for turn in turns}) < len(turns):
        raise BadRequest("Two turns of this archive have the same id.", field="turns")
    for turn in turns:
        used = turn.usage
        amounts = (used.input, used.output, used.cached, used.cost) if used is not None else ()
        if not all(0 <= each < math.inf for each in amounts):
            raise BadRequest(f"The usage of the turn {turn.id!r} is below zero or infinite.", field="turns")


def _bound(turn: TurnState) -> None:
    """Shorten titles, which lists show whole, and rename parts with the id of another one."""
    known: set[str] = set()
    for part in turn.parts:
        while part.id in known:
            part.id += "+"
        known.add(part.id)
        if isinstance(part, CallPart):
            part.title, part.tool = part.title[:_TITLE_CHARS], part.tool[: limits.TITLE_CHARS]


def _disown(turn: TurnState) -> None:
    """The attack: an archive names people of this host as those who wrote and approved. So all names are marked."""
    turn.by, turn.stopped_by = _foreign(turn.by), _foreign(turn.stopped_by)
    for part in turn.parts:
        if isinstance(part, QuestionPart):
            part.by = _foreign(part.by)
        elif isinstance(part, CallPart):
            for approval in part.approvals:
                approval.by = _foreign(approval.by)


def _foreign(by: str) -> str:
    return f"{IMPORTED}:{by.removeprefix(f'{IMPORTED}:')}"[: limits.TITLE_CHARS] if by else ""


def _renamed(ident: str) -> str:
    return f"{IMPORTED}.{ident.rpartition('.')[2]}"


def _blob(digest: str, text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise BadRequest(f"The blob {digest!r} is not base64.", field="blobs") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadRequest(f"The blob {digest!r} is not what its name says.", field="blobs")
    return data


def rename(value: Any, old: str, new: str) -> Any:
    """Rename ids that begin with `old`, anywhere in the value; longer texts are not ids."""
    if isinstance(value, dict):
        return {key: rename(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [rename(each, old, new) for each in value]
    if isinstance(value, str) and value.startswith(old) and len(value) < len(old) + 20 and " " not in value:
        return new + value[len(old) :]
    return value
