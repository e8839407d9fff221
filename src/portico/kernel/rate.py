"""Rate limit: a token bucket."""


class Bucket:
    """Allows `rate` per second on average, and bursts of `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = 0.0

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate
