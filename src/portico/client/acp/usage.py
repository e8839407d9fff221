"""Tokens and cost of a session as ACP reports them. Pure."""

from acp.schema import Cost, Usage, UsageUpdate

from portico.kernel import events as e
from portico.kernel.state import SessionState


class UsageReport:
    """What was reported since an editor opened a session."""

    def __init__(self, state: SessionState | None = None) -> None:
        usage = state.usage if state is not None else None
        self._cost = usage.cost if usage is not None else 0.0
        self._used = 0
        self._turns: dict[str, e.UsageReported] = {}
        turn = state.active if state is not None else None
        if turn is not None and (now := turn.usage) is not None:
            self._turns[turn.id] = e.UsageReported(turn.id, now.model, now.input, now.output, now.cached, now.cost)

    def add(self, event: e.UsageReported) -> None:
        before = self._turns.get(event.turn) or e.UsageReported(event.turn)
        base = e.UsageReported(event.turn) if event.total else before
        after = e.UsageReported(
            event.turn,
            event.model or base.model,
            base.input + event.input,
            base.output + event.output,
            base.cached + event.cached,
            base.cost + event.cost,
        )
        self._turns[event.turn] = after
        self._cost += after.cost - before.cost
        if event.input and not event.total:  # one request of the model: what it read and wrote is its context
            self._used = event.input + event.output

    def update(self, window: int | None) -> UsageUpdate | None:
        """None while the window of the model, or what is in it, is not known: ACP requires both."""
        if not window or not self._used:
            return None
        cost = Cost(amount=round(self._cost, 6), currency="USD") if self._cost else None
        return UsageUpdate(session_update="usage_update", used=self._used, size=window, cost=cost)

    def end(self, turn: str) -> Usage | None:
        """The usage of a turn that has ended."""
        found = self._turns.pop(turn, None)
        if found is None or not (found.input or found.output):
            return None
        return Usage(
            total_tokens=found.input + found.output,
            input_tokens=found.input,
            output_tokens=found.output,
            cached_read_tokens=found.cached or None,
        )
