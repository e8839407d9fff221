"""Decisions about a session as a whole."""

from collections.abc import Mapping
from typing import Any

import msgspec

from portico.kernel import autonomy, limits
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.config import COMMANDS, OWN_KEYS
from portico.kernel.config import check as check_config
from portico.kernel.context import RULES_SENT
from portico.kernel.customization import KEY as SWITCHES
from portico.kernel.customization import PLUGIN
from portico.kernel.decide.decision import Context, Outcome
from portico.kernel.errors import BadRequest, Forbidden, NotFound, RateLimited, TooLarge
from portico.kernel.events import Json
from portico.kernel.fold import configured
from portico.kernel.state import CHANGES, DRAFT, CallPart, SessionState, chat_flag


def rename(state: SessionState, command: c.RenameSession, context: Context) -> Outcome:
    return Outcome([e.SessionRenamed(title=checked_title(command.title), by=context.by)])


def set_model(state: SessionState, command: c.SetModel, context: Context) -> Outcome:
    return Outcome([e.SessionModel(model=command.model, by=context.by, config=command.config)])


def configure(state: SessionState, command: c.ConfigureSession, context: Context) -> Outcome:
    """Change settings. Callers without `approve` cannot loosen approval, nor drop strict settings by omitting them."""
    check_config(command.values)
    may_approve = context.caller.may("approve")
    keeps: list[str] = []
    if command.replace:
        held = () if may_approve else (*autonomy.APPROVAL_KEYS, autonomy.BUDGET)
        keeps = sorted({*command.keeps, *OWN_KEYS, *held})
    event = e.SessionConfigured(values=command.values, by=context.by, replace=command.replace, keeps=keeps)
    before = autonomy.Answering(state.agent, state.config)
    after = autonomy.Answering(state.agent, configured(state.config, event))
    context.check_space()
    check_announced(before.config, after.config, context.caller)
    _check_size(after.config, limits.CONFIG_BYTES, "All settings of a session", "values")
    found = autonomy.loosened(context.found, before, after)
    if not may_approve:
        autonomy.check(found)
    return Outcome([event], host_events=autonomy.audited(state.id, found, context.by))


def change(state: SessionState, command: c.ChangeSession, context: Context) -> Outcome:
    """Apply the rules of the individual commands, each to the state before this command."""
    found: list[Outcome] = []
    if command.title is not None:
        found.append(rename(state, c.RenameSession(session=state.id, title=command.title), context))
    if command.model is not None:
        found.append(set_model(state, c.SetModel(session=state.id, model=command.model), context))
    if command.archived is not None:
        found.append(archive(state, c.ArchiveSession(session=state.id, archived=command.archived), context))
    if command.read is not None:
        found.append(mark_read(state, c.MarkRead(session=state.id, read=command.read), context))
    if command.config is not None:
        found.append(configure(state, c.ConfigureSession(session=state.id, values=command.config), context))
    events = [event for each in found for event in each.events]
    return Outcome(events, host_events=[event for each in found for event in each.host_events])


def check_announced(before: Mapping[str, Any], after: Mapping[str, Any], caller: c.Caller) -> None:
    """Refuse changes of the announced commands by clients: they decide which messages may loosen approval."""
    if caller.outside and after.get(COMMANDS) != before.get(COMMANDS):
        raise Forbidden(
            f"{COMMANDS!r} are what the agent announces; nobody else sets them.", field=f"config.{COMMANDS}"
        )


def archive(state: SessionState, command: c.ArchiveSession, context: Context) -> Outcome:
    only = command.only if state.parent is None else None
    return Outcome([e.SessionArchived(archived=command.archived, by=context.by, only=only)])


def mark_read(state: SessionState, command: c.MarkRead, context: Context) -> Outcome:
    only = command.only if state.parent is None else None
    flags = {"session": state.read, "chat": chat_flag(state, "read")}
    if all(flags[each] is command.read for each in ([only] if only else flags)):
        return Outcome()
    return Outcome([e.SessionRead(read=command.read, by=context.by, only=only)])


def close(state: SessionState, command: c.CloseSession, context: Context) -> Outcome:
    """The history and the queue stay."""
    return Outcome([] if state.closed else [e.SessionClosed(by=context.by, reason=command.reason)])


def reopen(state: SessionState, command: c.ReopenSession, context: Context) -> Outcome:
    return Outcome([e.SessionReopened(by=context.by)] if state.closed else [])


def truncate(state: SessionState, command: c.TruncateSession, context: Context) -> Outcome:
    if command.turn is not None and state.turn(command.turn) is None:
        raise NotFound("turn", command.turn)
    return Outcome([e.SessionTruncated(turn=command.turn, by=context.by)])


# -- what clients bring ----------------------------------------------------------------------------------------


def join(state: SessionState, command: c.JoinSession, context: Context) -> Outcome:
    context.check_space()
    if len(state.clients) >= limits.CLIENTS and all(each.id != command.client for each in state.clients):
        raise RateLimited(f"{limits.CLIENTS} clients lend their tools to {state.id!r}; one has to leave first.")
    _check_size([command.name, command.tools, command.meta], limits.CLIENT_BYTES, "A client with its tools", "tools")
    return Outcome([e.ClientJoined(client=command.client, name=command.name, tools=command.tools, meta=command.meta)])


def leave(state: SessionState, command: c.LeaveSession, context: Context) -> Outcome:
    parts = state.active.parts if state.active is not None else []
    runs = any(isinstance(each, CallPart) and each.owner == command.client and not each.done for each in parts)
    if all(each.id != command.client for each in state.clients) and not (command.abandon and runs):
        return Outcome()
    return Outcome([e.ClientLeft(client=command.client, by=context.by, abandon=command.abandon)])


def share(state: SessionState, command: c.ShareData, context: Context) -> Outcome:
    if context.caller.outside and not context.caller.client and command.key.startswith(_UNDERSTOOD):
        words = f"{command.key!r} is understood by the host or by editors, and kept by them; choose another name."
        raise Forbidden(words, field="key")
    if len(command.key) > limits.TITLE_CHARS * 20:
        raise BadRequest("The name is too long.", field="key")
    kept = kept_data(state, command.key, command.value, context)
    return Outcome([e.ClientKept(key=command.key, value=kept, by=context.by, action=command.action)])


_UNDERSTOOD = (PLUGIN, SWITCHES, DRAFT, RULES_SENT, CHANGES, "jobs/", "annotation/", "reviewed/")
"""Keys and prefixes of values that the host and editors read, in their own formats."""
_SMALL_BYTES = 2 * limits.KIB
"""Values up to this size are limited only in number."""


def kept_data(state: SessionState, key: str, value: Json | None, context: Context) -> Json | None:
    """Return the value; raise if there is no space for it."""
    if value is None:
        return None
    context.check_space()
    if key not in state.client_data and len(state.client_data) >= limits.CLIENT_DATA_KEYS:
        raise RateLimited(f"{limits.CLIENT_DATA_KEYS} things are kept beside {state.id!r}; take some away.")
    if len(msgspec.json.encode(value)) > _SMALL_BYTES:
        others = {name: each for name, each in state.client_data.items() if name != key}
        _check_size([others, value], limits.CLIENT_DATA_BYTES, "What is kept beside a session", "value")
    return value


def _check_size(what: object, limit: int, words: str, field: str) -> None:
    size = len(msgspec.json.encode(what))
    if size > limit:
        raise TooLarge(f"{words}: {limit} bytes at most, and these are {size}.", field=field)


def checked_title(title: str) -> str:
    title = title.strip()
    if not title or len(title) > limits.TITLE_CHARS:
        raise BadRequest(f"A title has 1 to {limits.TITLE_CHARS} characters.", field="title")
    return title
