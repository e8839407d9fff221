"""Rate limit on wrong tokens, per address."""

from collections import deque

from portico import limits


class WrongTokens:
    """Counts wrong tokens per address in the last minute. Valid tokens are never delayed, so no user is locked out."""

    _WINDOW = 60.0
    _WAIT = 1.0
    _ADDRESSES = 10_000

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def count(self, address: str, now: float) -> tuple[float, bool]:
        """Count one wrong token. Returns the delay of the response and whether to write an audit record: guesses
        must not fill the disk."""
        if len(self._times) > self._ADDRESSES:
            self._times.clear()
        times = self._times.setdefault(address, deque(maxlen=limits.WRONG_TOKENS + 1))
        while times and times[0] < now - self._WINDOW:
            times.popleft()
        news = len(times) <= limits.WRONG_TOKENS
        times.append(now)
        return (self._WAIT if len(times) > limits.WRONG_TOKENS else 0.0), news
