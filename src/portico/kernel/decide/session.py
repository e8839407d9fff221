"""Decisions about a session as a whole."""

from collections.abc import Mapping, Sequence
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
from portico.kernel.decide.decision import Context, Outcome, check_open
from portico.kernel.decide.turn import check_message
from portico.kernel.draft import DRAFT, offer
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, RateLimited, TooLarge, TurnInProgress
from portico.kernel.events import Channel, Json, Message
from portico.kernel.fold import configured
from portico.kernel.state import CHANGES, CallPart, SessionState, chat_flag


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


# -- folders ---------------------------------------------------------------------------------------------------


def add_folder(state: SessionState, command: c.AddFolder, context: Context) -> Outcome:
    folder: str = context.found
    given = [state.cwd, *state.folders]
    if folder in given:
        return Outcome()
    if len(given) > limits.FOLDERS:
        raise RateLimited(f"A session has at most {limits.FOLDERS} folders beside its own.")
    return Outcome([e.FolderAdded(folder=folder, by=context.by)])


def remove_folder(state: SessionState, command: c.RemoveFolder, context: Context) -> Outcome:
    """With what conversations below that run in it, or have chosen it, work in from now on: all in one commit."""
    replacement: str | None
    chats: Sequence[SessionState]
    replacement, chats = context.found
    if command.replacement is not None:
        context.require("approve")
    if command.folder == state.cwd:
        _check_movable(state, replacement)
    elif command.folder not in state.folders:
        return Outcome()
    removed = e.FolderRemoved(folder=command.folder, by=context.by, replacement=replacement)
    others: list[tuple[Channel, e.Event]] = []
    for chat in chats:
        if chat.cwd == command.folder:
            _check_movable(chat, replacement)
            moved = e.FolderRemoved(folder=command.folder, by="host", replacement=replacement)
            others.append((f"session/{chat.id}", moved))
        others += [(f"session/{chat.id}", each) for each in _unchoose(chat, command.folder, replacement)]
    return Outcome([removed, *_unchoose(state, command.folder, replacement)], others=others)


def _unchoose(chat: SessionState, folder: str, replacement: str | None) -> list[e.Event]:
    chosen = chat.folder_subset or []
    if folder not in chosen:
        return []
    removed = e.FolderRemoved(folder=folder, by="host", chat=True)
    if replacement is None or replacement in chosen:
        return [removed]
    return [removed, e.FolderAdded(folder=replacement, by="host", chat=True)]


def _check_movable(state: SessionState, replacement: str | None) -> None:
    """Its agent's process runs in the first folder: another one can take its place between two turns."""
    if replacement is None:
        raise Conflict(f"The session runs in {state.cwd!r}: another folder can take its place, but one there must be.")
    if state.worktree:
        raise Conflict(f"The session has a worktree of its own in {state.cwd!r}, and stays there.")
    if state.active is not None:
        raise TurnInProgress(f"A turn is running in {state.cwd!r}; wait for its end.")


def choose_folder(state: SessionState, command: c.ChooseFolder, context: Context) -> Outcome:
    """Choose a folder. After the first choice the conversation has only the chosen folders."""
    chosen = command.folder in (state.folder_subset or [])
    if chosen is command.chosen:
        return Outcome()
    if not command.chosen:
        return Outcome([e.FolderRemoved(folder=command.folder, by=context.by, chat=True)])
    if command.folder not in context.found:
        raise Conflict(f"{command.folder!r} is none of the session's folders.")
    return Outcome([e.FolderAdded(folder=command.folder, by=context.by, chat=True)])


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
    kept = _kept(state, command.key, command.value, context)
    return Outcome([e.ClientKept(key=command.key, value=kept, by=context.by, action=command.action)])


_UNDERSTOOD = (PLUGIN, SWITCHES, DRAFT, RULES_SENT, CHANGES, "jobs/", "annotation/", "reviewed/")
"""Keys and prefixes of values that the host and editors read, in their own formats."""
_SMALL_BYTES = 2 * limits.KIB
"""Values up to this size are limited only in number."""


def _kept(state: SessionState, key: str, value: Json | None, context: Context) -> Json | None:
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


def set_draft(state: SessionState, command: c.SetDraft, context: Context) -> Outcome:
    check_open(state)
    before = state.client_data.get(DRAFT)
    if not command.text:
        cleared: list[e.Event] = [e.ClientKept(key=DRAFT, value=None, by=context.by)] if before is not None else []
        return Outcome(cleared, c.DraftText(""))
    typed: Json = {"text": command.text, "origin": {"kind": "user"}}
    value = typed if command.typed else offer(command.text, before)
    check_message(Message(value["text"]), blank=True)
    kept = _kept(state, DRAFT, value, context)
    return Outcome([e.ClientKept(key=DRAFT, value=kept, by=context.by)], c.DraftText(value["text"]))


def checked_title(title: str) -> str:
    title = title.strip()
    if not title or len(title) > limits.TITLE_CHARS:
        raise BadRequest(f"A title has 1 to {limits.TITLE_CHARS} characters.", field="title")
    return title
