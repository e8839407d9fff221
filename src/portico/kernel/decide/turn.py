"""Decisions about turns and the queue. One turn runs at a time; later messages are queued."""

import msgspec

from portico.kernel import autonomy, customization, limits
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.command_turn import COMMAND_LINE, command_line
from portico.kernel.decide.decision import Context, Outcome, check_open
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, TooLarge, TurnInProgress
from portico.kernel.events import Message, PendingKind
from portico.kernel.state import DRAFT, PendingState, SessionState


def send(state: SessionState, command: c.SendMessage, context: Context) -> Outcome:
    found = _check_commands(state, command.message, context) if command.text.lstrip().startswith("/") else []
    decision = _send(state, command, context)
    events = [*decision.events, *(_sent_draft(state, command.message) if DRAFT in state.client_data else ())]
    audited = autonomy.audited(state.id, found, context.caller.by) if found else []
    return msgspec.structs.replace(decision, events=events, host_events=audited)


def _sent_draft(state: SessionState, message: Message) -> list[e.Event]:
    """Delete the draft when any client sends its text: otherwise every input would still show it."""
    draft = state.client_data.get(DRAFT) or {}
    sent = message.text.strip() and message.text.strip() == str(draft.get("text", "")).strip()
    return [e.ClientKept(key=DRAFT, value=None, by="host")] if sent else []


def _send(state: SessionState, command: c.SendMessage, context: Context) -> Outcome:
    message = command.message
    check_message(message, blank=command.blank)
    check_open(state)
    if command.turn is not None and state.turn(command.turn) is not None:
        raise Conflict(f"There is a turn {command.turn!r} already.")
    if command.pending is not None and state.pending(command.pending) is None:
        raise NotFound("queued message", command.pending)
    if state.active is None and (command.busy != "queue" or not state.queue):
        context.check_room()
        turn = command.turn or context.new_id("t")
        return Outcome(_begin(state, message, context.caller.by, turn, command.pending), c.TurnBegun(turn))
    if command.busy == "refuse":
        raise TurnInProgress(f"A turn is running in {state.id!r}; queue the message or wait.")
    waiting = _waiting(state, message, "steer" if command.busy == "steer" else "queue", None, context)
    queued = _queued(state, waiting, context)
    offered = command.busy == "steer" and isinstance(queued.answer, c.Queued)
    return msgspec.structs.replace(queued, offer=waiting.pending) if offered else queued


def run(state: SessionState, command: c.RunCommand, context: Context) -> Outcome:
    line = command.line.strip()
    message = Message(command.text or line, meta={COMMAND_LINE: line})
    check_message(Message(line))
    check_open(state)
    if command.turn is not None and state.turn(command.turn) is not None:
        raise Conflict(f"There is a turn {command.turn!r} already.")
    if state.active is not None:
        raise TurnInProgress(f"A turn is running in {state.id!r}; wait for its end, or open a terminal.")
    context.check_room()
    turn = command.turn or context.new_id("t")
    return Outcome(_begin(state, message, context.caller.by, turn, None), c.TurnBegun(turn))


def _queued(state: SessionState, added: e.QueueAdded, context: Context) -> Outcome:
    """Queue a message. An idle session starts the first message of its queue."""
    queue = [*state.queue, PendingState(added.pending, added.kind, added.message, added.by)]
    events: list[e.Event] = [added]
    if state.active is None and (following := _next(queue)) is not None:
        turn = context.new_id("t")
        events += _begin(state, following.message, following.by, turn, following.id)
        if following.id == added.pending:
            return Outcome(events, c.TurnBegun(turn))
        queue.remove(following)
    return Outcome(events, c.Queued(True, added.pending, [each.id for each in queue].index(added.pending) + 1))


def start_next(state: SessionState, context: Context, *, released: bool = False) -> Outcome:
    """Start the next message of the queue, unless it is held or a turn runs."""
    following, held = _next(state.queue), state.queue_held and not released
    if following is None or state.active is not None or held or state.closed or context.stopping or context.resting:
        return Outcome()
    return Outcome(_begin(state, following.message, following.by, context.new_id("t"), following.id))


def _next(queue: list[PendingState]) -> PendingState | None:
    """Return the next message: steering messages come first."""
    return next((each for each in queue if each.kind == "steer"), queue[0] if queue else None)


def _begin(state: SessionState, message: Message, by: str, turn: str, pending: str | None) -> list[e.Event]:
    events: list[e.Event] = [e.TurnStarted(turn=turn, message=message, by=by, pending=pending)]
    if not state.title:
        events.append(e.SessionRenamed(title=title_of(command_line(message) or message.text), by="host"))
    return events


def resume(state: SessionState, command: c.ResumeTurn, context: Context) -> Outcome:
    """Resume the last turn where it stopped, if it failed or was interrupted. Its output is kept."""
    check_open(state, writes=False)
    last = state.turns[-1] if state.turns else None
    if last is None or not last.resumable or (command.turn is not None and last.id != command.turn):
        raise Conflict("Only the last turn can be resumed, and only if it failed or was interrupted.")
    if command_line(last.message) is not None:
        raise Conflict("A command is not resumed: run it again.")
    context.check_room()
    return Outcome([e.TurnResumed(turn=last.id, by=context.caller.by)], c.TurnBegun(last.id))


# -- the queue -------------------------------------------------------------------------------------------------


def queue(state: SessionState, command: c.QueueMessage, context: Context) -> Outcome:
    check_message(command.message)
    found = _check_commands(state, command.message, context)
    added = _waiting(state, command.message, command.kind, command.pending, context)
    answer = c.Queued(True, added.pending, len(state.queue) + 1)
    events = [added, *_sent_draft(state, command.message)]
    return Outcome(events, answer, autonomy.audited(state.id, found, context.caller.by))


def _waiting(
    state: SessionState, message: Message, kind: PendingKind, ident: str | None, context: Context
) -> e.QueueAdded:
    check_open(state)
    if len(state.queue) >= limits.QUEUE_LENGTH:
        raise Conflict(f"The queue of {state.id!r} is full ({limits.QUEUE_LENGTH} messages).")
    if ident is not None and state.pending(ident) is not None:
        raise Conflict(f"There is a queued message {ident!r} already.")
    return e.QueueAdded(pending=ident or context.new_id("m"), kind=kind, message=message, by=context.caller.by)


def edit(state: SessionState, command: c.EditQueued, context: Context) -> Outcome:
    check_message(command.message)
    found = _check_commands(state, command.message, context)
    kind = waiting_message(state, command.pending).kind
    edited = e.QueueEdited(pending=command.pending, message=command.message, by=context.caller.by, kind=kind)
    return Outcome([edited], host_events=autonomy.audited(state.id, found, context.caller.by))


def reorder(state: SessionState, command: c.ReorderQueue, context: Context) -> Outcome:
    for ident in () if command.lenient else command.order:
        waiting_message(state, ident)
    return Outcome([e.QueueReordered(order=command.order, by=context.caller.by)])


def remove(state: SessionState, command: c.RemoveQueued, context: Context) -> Outcome:
    kind = waiting_message(state, command.pending).kind
    return Outcome([e.QueueRemoved(pending=command.pending, by=context.caller.by, kind=kind)])


def release(state: SessionState, command: c.ReleaseQueue, context: Context) -> Outcome:
    """Release the queue and start its next message in the same commit."""
    held = [e.QueueHeld(held=False, by=context.caller.by)] if state.queue_held else []
    return Outcome([*held, *start_next(state, context, released=True).events])


def steered(state: SessionState, ident: str, taken: bool, by: str) -> Outcome:
    """Record whether the running agent accepted an offered message. If not, it becomes the first of the queue."""
    pending = state.pending(ident)
    if pending is None:  # the turn has ended, and the message has started a new turn
        return Outcome()
    if taken:
        return Outcome([e.QueueRemoved(pending=ident, by=by, reason="steered", kind=pending.kind)])
    others = [each.id for each in state.queue if each.id != ident]
    return Outcome([e.QueueReordered(order=[ident, *others], by=by)])


def waiting_message(state: SessionState, ident: str) -> PendingState:
    found = state.pending(ident)
    if found is None:
        raise NotFound("queued message", ident)
    return found


# -- messages --------------------------------------------------------------------------------------------------


def check_message(message: Message, *, blank: bool = False) -> None:
    if COMMAND_LINE in message.meta:  # a message never runs a command, also not through its `meta`
        raise Forbidden(f"A message carries no {COMMAND_LINE!r}: 'command.run' runs one, with the scope 'terminal'.")
    if not blank and not message.text.strip() and not message.attachments:
        raise BadRequest("A message needs some text.", field="text")
    try:
        size = len(msgspec.json.encode(message))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The message is not valid: {error}.", field="text") from error
    if size > limits.MESSAGE_BYTES:
        raise TooLarge(f"The message has {size} bytes; the limit is {limits.MESSAGE_BYTES}.", field="text")


def _check_commands(state: SessionState, message: Message, context: Context) -> list[autonomy.Loosened]:
    """Refuse agent commands that loosen approval, or are not classified, from callers without the scope `approve`. The
    host expands prompts of plugins; their text is checked as if it were typed."""
    if not message.text.lstrip().startswith("/"):
        return []
    answering = autonomy.Answering(state.agent, state.config)
    text = customization.expanded(message.text, state.client_data) if message.text.startswith("/") else message.text
    found = autonomy.commanded(context.found or {}, text, answering)
    if not context.caller.may("approve"):
        autonomy.check(found)
    return found


def title_of(text: str) -> str:
    """Return the first line that is not empty, cut to the length that lists show."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "Untitled")
    return line if len(line) <= 80 else line[:79].rstrip() + "…"
