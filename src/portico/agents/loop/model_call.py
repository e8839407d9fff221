"""Asking one model after the other: retries, what an endpoint lacks, and the fallback to the next model.

A run keeps the model that answered last, so a fallback happens once and the run continues.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Literal

from portico import limits
from portico.agents.loop.discovery import Directory
from portico.agents.loop.endpoint import ModelEndpoint
from portico.agents.loop.reply import Feature, ModelError, Reply, Report
from portico.agents.loop.settings import Current
from portico.agents.loop.windows import SHARE, SHRINK, UNKNOWN_CHARS, of_price_list
from portico.agents.loop.wires.request import CompletionRequest
from portico.agents.loop.wires.roles import fitted
from portico.kernel.errors import AgentError, SignInRequired

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt; the last one repeats."""
WAIT_MAX = 30.0
"""What an endpoint may ask to wait while there is another model to continue with."""
WAIT_LAST = 300.0
"""What it may ask where there is none: rate limits count by the minute."""
WAITS_MAX = 8
"""How often in a row an endpoint may ask to wait: unlike failures, waits that it asks for lead to an answer."""

LONG_CHARS = UNKNOWN_CHARS // 2
"""Of a conversation from which on the price list is asked for a window that nobody else knows."""
Mode = Literal["tools", "schema", "text"]
FEATURES: tuple[Feature, ...] = ("tools", "schema", "usage", "pictures", "temperature", "max_tokens")
SHAPES: tuple[Feature, ...] = ("system", "alternation", "extras")
"""Of messages. One conversation may have what another does not have, so that an answer proves nothing."""
TIMEOUT_FACTOR = 4
"""How much longer a model may be silent in the next attempt: one that reads slowly would never come to its answer."""
NOTICES: dict[Feature, str] = {
    "usage": "{model} does not report tokens in a stream; they are not counted.",
    "temperature": "{error} It is left out for some minutes.",
    "max_tokens": "{error} {model} is asked with `max_completion_tokens` for some minutes.",
    "system": "{error} {model} gets its instructions in the first message for some minutes.",
    "alternation": "{error} {model} gets messages in alternating roles for some minutes.",
    "extras": "{error} {model} gets its messages without the fields of other vendors for some minutes.",
    "tools": "{error} {model} is asked without native tools for some minutes; it writes its calls as text.",
    "pictures": "{model} does not take pictures; they are left out.",
}
"""What a person is informed of when a feature is left out."""


class Known:
    """What was learned about a model at an endpoint. Shared by all runs of the agent."""

    def __init__(self) -> None:
        self._lacking: dict[Feature, float] = {}
        self.most: int | None = None
        """Tokens of the longest answer, where an error has named them."""
        self.works: set[Feature] = set()
        """Features of requests that were answered: a later error is about something else."""

    def lacks(self, feature: Feature) -> bool:
        noted_at = self._lacking.get(feature)
        return noted_at is not None and monotonic() - noted_at < limits.AGENT_FACT_SECONDS

    def lacking(self) -> frozenset[Feature]:
        return frozenset(feature for feature in self._lacking if self.lacks(feature))

    def leave_out(self, feature: Feature) -> None:
        self._lacking[feature] = monotonic()


Lacking = dict[tuple[str, str], Known]
"""By address and model."""


class Way:
    """How to ask: which model, where, and without which features."""

    def __init__(self, model: str, endpoint: ModelEndpoint, mode: Mode, known: Known | None = None) -> None:
        self.model = model
        self.endpoint = endpoint
        self.mode: Mode = mode
        self.lacks: frozenset[Feature] = known.lacking() if known is not None else frozenset()
        self._most = known.most if known is not None else None

    @property
    def usage(self) -> bool:
        return "usage" not in self.lacks

    @property
    def pictures(self) -> bool:
        return "pictures" not in self.lacks

    @property
    def max_tokens(self) -> int | None:
        """Of an answer: what the endpoint is asked for, or the most that the model has."""
        return min((each for each in (self.endpoint.max_tokens, self._most) if each is not None), default=None)

    def temperature(self, wanted: float | None) -> float | None:
        return None if "temperature" in self.lacks else wanted


class ModelCaller:
    def __init__(
        self,
        directory: Directory,
        current: Current,
        models: Sequence[str],
        lacking: Lacking,
        notice: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        waits: Callable[[str], None] | None = None,
    ) -> None:
        """`waits` is a notice that also explains the silence that follows."""
        self._directory = directory
        self._current = current
        self._models = list(models)
        self._lacking = lacking
        self._notice = notice
        self._waits = waits or notice
        self._sleep = sleep
        self._at = 0
        self._problems: list[str] = []

    @property
    def model(self) -> str:
        return self._models[self._at]

    async def room(self, needed: int = 0) -> int:
        """Characters that a request to the model may have; `needed`: those that the conversation has."""
        endpoint = await self._directory.find(self.model, self._current)
        loop, windows = self._current.loop, self._directory.windows
        reported = loop.context_tokens or await endpoint.window(self.model)
        if not reported and needed > LONG_CHARS:
            reported = await asyncio.to_thread(of_price_list, self.model)
        known = windows.chars(self.model, reported) or loop.context_chars or UNKNOWN_CHARS
        bounds = [each for each in (known, loop.context_chars, endpoint.context_chars) if each]
        return min(bounds)

    def learn(self, error: ModelError, chars: int) -> None:
        """A request with so many characters was too long. What the error names is kept, also for later sessions."""
        windows = self._directory.windows
        spoken = error.window if error.window and error.window * windows.ratio(self.model) < 2 * chars else None
        guess = max(1000, int(chars * SHRINK / windows.ratio(self.model) / SHARE))
        windows.learn(self.model, spoken or guess, named=spoken is not None)

    def count(self, reply: Reply, chars: int) -> None:
        if reply.usage is not None:
            self._directory.windows.count(self.model, chars, reply.usage.input)

    async def ask(
        self,
        build: Callable[[Way], CompletionRequest],
        report: Report,
        drained: Callable[[], Awaitable[None]],
        void: Callable[[], None] = lambda: None,
        grow: Callable[[str, str, str], None] = lambda ident, name, piece: None,
    ) -> Reply:
        """Return the answer of the first model that gives one. `build` makes the request for a way; `void` is called
        when an attempt broke off and is retried."""
        while True:
            try:
                return await self._ask_one(build, report, drained, void, grow)
            except ModelError as error:
                if error.too_long:
                    raise
                self._problems.append(f"{self.model}: {error.message}")
                if self._at + 1 >= len(self._models):  # the partial text stays: there is no other
                    problem = SignInRequired if error.refused else AgentError
                    raise problem("No model answered. " + " | ".join(self._problems[-4:])) from error
                self._at += 1
                void()
                self._notice(f"{error.message} Going on with {self.model}.")

    async def _ask_one(
        self,
        build: Callable[[Way], CompletionRequest],
        report: Report,
        drained: Callable[[], Awaitable[None]],
        void: Callable[[], None],
        grow: Callable[[str, str, str], None],
    ) -> Reply:
        endpoint = await self._directory.find(self.model, self._current)
        known = self._lacking.setdefault((endpoint.url, self.model), Known())
        attempts, timeout_factor = 0, 1
        while True:
            mode = self._mode(endpoint, known)
            ask = build(Way(self.model, endpoint, mode, known))
            try:
                reply = await endpoint.ask(ask, report, drained, void, grow, timeout_factor)
                known.works |= {feature for feature in FEATURES if _asked_for(ask, feature)}
                return reply
            except ModelError as error:
                if self._leaves_out(error, known, ask):
                    continue
                attempts += 1
                timeout_factor *= TIMEOUT_FACTOR if error.silent else 1
                retries = self._current.loop.retries
                if retries and error.retry_after is not None:
                    retries = max(retries, WAITS_MAX)
                if not error.again or attempts > retries:
                    raise
                wait = _wait(error, attempts)
                if wait > (WAIT_MAX if self._at + 1 < len(self._models) else WAIT_LAST):
                    raise
                void()
                if error.silent:
                    more = f"Trying again, and waiting up to {self._current.loop.timeout * timeout_factor:.0f} seconds."
                    self._waits(f"{error.message} {more}")
                elif wait >= 5:
                    self._waits(f"{error.message} Trying again in {wait:.0f} seconds.")
                else:
                    self._notice(f"{error.message} Trying again.")
                await self._sleep(wait)

    def _leaves_out(self, error: ModelError, known: Known, ask: CompletionRequest) -> bool:
        """Whether the request is made again without a feature that the endpoint clearly rejects: only one that it has
        never accepted, and only for some minutes."""
        feature = error.lacks
        if feature == "alternation" and known.lacks(feature):  # its template has no role for results of tools
            feature = "tools"
        elif feature is None or feature in known.works:
            return False
        if known.lacks(feature) or not _asked_for(ask, feature):
            return self._shortens(error, known)
        known.leave_out(feature)
        known.most = error.most or known.most
        if feature in NOTICES:
            self._notice(NOTICES[feature].format(model=self.model, error=error.message))
        return True

    def _shortens(self, error: ModelError, known: Known) -> bool:
        """Whether the request is made again for a shorter answer."""
        if error.most is None or known.most == error.most:
            return False
        known.most = error.most
        self._notice(f"{error.message} Answers of {self.model} have at most {error.most} tokens.")
        return True

    def _mode(self, endpoint: ModelEndpoint, known: Known) -> Mode:
        wanted = self._current.loop.protocol
        order: tuple[Mode, ...] = ("schema", "text") if endpoint.schema_first else ("tools", "schema", "text")
        if wanted != "auto":
            order = (wanted, "text")
        if not endpoint.codec.schemas:
            order = tuple(mode for mode in order if mode != "schema")
        return next(mode for mode in order if mode == "text" or not known.lacks(mode))


def _asked_for(ask: CompletionRequest, feature: Feature) -> bool:
    return {
        "tools": bool(ask.tools),
        "schema": ask.schema is not None,
        "usage": ask.usage,
        "pictures": ask.pictures,
        "temperature": ask.temperature is not None,
        "max_tokens": ask.max_tokens is not None and ask.wire == "chat",
        **{each: ask.wire == "chat" and fitted(ask.messages, [each]) != list(ask.messages) for each in SHAPES},
    }[feature]


def _wait(error: ModelError, attempt: int) -> float:
    """What the endpoint asks for, or our own growing waits, never all clients at the same moment."""
    if error.retry_after is not None:
        return error.retry_after
    return WAITS[min(attempt, len(WAITS)) - 1] * random.uniform(0.75, 1.25)
