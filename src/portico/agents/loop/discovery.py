"""Where there are models: the settings, the environment, servers of this machine, and models that we run ourselves.

Nothing is assumed: an endpoint that a person configured is offered even while it does not answer (with the reason),
one that was only guessed must have answered.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from portico.agents.certificates import certificates
from portico.agents.facts import Problem
from portico.agents.loop.endpoint import ModelEndpoint
from portico.agents.loop.reply import ModelError, NoList
from portico.agents.loop.settings import Current, LoopSettings
from portico.agents.loop.windows import Windows
from portico.kernel.errors import AgentUnavailable
from portico.models.catalogue import is_toy
from portico.models.server import LocalServers
from portico.models.store import ModelStore

FRESH_SECONDS = 10.0
"""How long a list of models is believed: describing an agent must not cost a request each time."""
UNNAMED = "default"
"""The model name for an endpoint that does not list its models, if none is configured: most of them serve just one."""
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
OLLAMA = "127.0.0.1:11434"
LLAMA_CPP = "http://127.0.0.1:8080/v1"
ANSWER_TOKENS = 2048
"""Output limit for a model that we run ourselves; small ones do not always stop."""
CHARS_PER_TOKEN = 3
"""On the safe side: code has fewer characters to a token than prose."""
TOY_TOKENS = 400
"""A toy model has nothing to add after that, and often does not stop."""
TOY_TEXT = 120
"""Characters of one text in a toy's answer: so that even two long actions fit into one answer and stay valid."""

HOW_TO_GET_ONE = (
    "No model was found. Set OPENAI_BASE_URL and OPENAI_API_KEY, or base_url in [agents.loop], or start Ollama or a "
    "llama.cpp server, or try the toy model: portico model offer --yes"
)


@dataclass
class EndpointSource:
    """An endpoint and what it offers. `problem` contains the reason if it does not answer."""

    endpoint: ModelEndpoint
    guessed: bool
    models: list[str] = field(default_factory=list)
    problem: str = ""


class Directory:
    """All places, kept until the settings change or the list is old."""

    def __init__(self, home: Path, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._store = ModelStore(home / "models")
        self.windows = Windows(home)
        self._servers = LocalServers()
        self._running: dict[str, ModelEndpoint] = {}
        self._retired: list[ModelEndpoint] = []
        self._places: list[EndpointSource] = []
        self._built_from: LoopSettings | None = None
        self._asked_at = 0.0
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        endpoints = [*(place.endpoint for place in self._places), *self._running.values(), *self._retired]
        await asyncio.gather(*(endpoint.close() for endpoint in endpoints))
        await self._servers.close()

    async def places(self, current: Current) -> list[EndpointSource]:
        async with self._lock:
            if self._built_from != current.loop:
                # Not closed yet: a run may be in the middle of a request there.
                self._retired += [place.endpoint for place in self._places]
                await asyncio.to_thread(certificates)
                self._places = [
                    EndpointSource(endpoint, guessed) for endpoint, guessed in self._endpoints(current.loop)
                ]
                self._built_from = current.loop
                self._asked_at = 0.0
            if time.monotonic() - self._asked_at > FRESH_SECONDS or not self._asked_at:
                await asyncio.gather(*(_look(place) for place in self._places))
                self._asked_at = time.monotonic()
            return [place for place in self._places if not place.guessed or place.models]

    def _endpoints(self, loop: LoopSettings) -> list[tuple[ModelEndpoint, bool]]:
        environ, timeout = self._environ, loop.timeout
        found: list[tuple[ModelEndpoint, bool]] = []
        if loop.base_url:
            key = loop.api_key or environ.get(loop.api_key_env, "")
            found.append(
                (ModelEndpoint("the model endpoint", loop.base_url, key, timeout=timeout, wire=loop.wire), False)
            )
        for name, each in loop.endpoints.items():
            found.append(
                (ModelEndpoint(name, each.base_url, each.key(environ), timeout=timeout, wire=each.wire), False)
            )
        if not loop.discover:
            return found
        url, key = environ.get("OPENAI_BASE_URL", ""), environ.get("OPENAI_API_KEY", "")
        if url or key:
            name = "OPENAI_BASE_URL" if url else "OpenAI"
            found.append((ModelEndpoint(name, url or OPENAI, key, timeout=timeout, wire=loop.wire), False))
        if key := environ.get("ANTHROPIC_API_KEY", ""):
            url = environ.get("ANTHROPIC_BASE_URL", "").rstrip("/") or ANTHROPIC
            address = url if url.endswith("/v1") else f"{url}/v1"
            found.append((ModelEndpoint("Anthropic", address, key, timeout=timeout, wire="messages"), False))
        ollama = environ.get("OLLAMA_HOST", OLLAMA).removeprefix("http://").removesuffix("/")
        found.append((ModelEndpoint("Ollama", f"http://{ollama}/v1", timeout=timeout), True))
        found.append((ModelEndpoint("llama.cpp", LLAMA_CPP, timeout=timeout, schema_first=True), True))
        return found

    def forget(self) -> None:
        """Drops the lists and the rejected keys: the next one who needs them asks again."""
        self._asked_at = 0.0
        for place in self._places:
            place.endpoint.refused = Problem()

    def local(self) -> list[str]:
        """The models in our own store."""
        return self._store.names()

    async def names(self, current: Current) -> list[str]:
        """Every model, the user's own order first."""
        said = self._environ.get("OPENAI_MODEL") if current.loop.discover else None
        chosen = [*current.models, *filter(None, [said, self._store.chosen()])]
        listed = [model for place in await self.places(current) for model in place.models]
        return list(dict.fromkeys([*chosen, *listed, *sorted(self.local(), key=is_toy)]))

    async def missing(self, current: Current) -> str | None:
        if not current.agent.enabled:
            return "The built-in agent is off. Set enabled = true in [agent] of the settings."
        places = await self.places(current)
        open_ones = [place for place in places if not place.endpoint.refused.current]
        if any(place.models for place in open_ones) or self.local():
            return None
        if current.models and open_ones:
            return None  # endpoints need not list their models
        refused = next(filter(None, (place.endpoint.refused.current for place in places)), "")
        problem = refused or next((place.problem for place in places if place.problem), "")
        return problem or HOW_TO_GET_ONE

    async def find(self, model: str, current: Current) -> ModelEndpoint:
        """Return the endpoint for `model`. An unlisted name goes to the first endpoint: lists may be incomplete."""
        places = await self.places(current)
        for place in places:
            if model in place.models:
                return place.endpoint
        path = self._store.path(model)
        if path is not None:
            return await self._own(model, path, current.loop)
        if places:
            return places[0].endpoint
        raise AgentUnavailable(HOW_TO_GET_ONE)

    async def _own(self, model: str, path: Path, loop: LoopSettings) -> ModelEndpoint:
        """A model that we run ourselves; a child that was started anew has a new address."""
        server = self._servers.server(model, path)
        address = await server.address(loop.unload_minutes * 60)
        before = self._running.get(model)
        if before is not None and before.url == address.url:
            return before
        if before is not None:
            await before.close()
        endpoint = ModelEndpoint(
            model,
            address.url,
            address.key,
            timeout=loop.timeout,
            schema_first=True,
            context_chars=(address.context - ANSWER_TOKENS) * CHARS_PER_TOKEN,
            max_tokens=TOY_TOKENS if is_toy(model) else ANSWER_TOKENS,
            bound=TOY_TEXT if is_toy(model) else None,
            using=server.using,
        )
        self._running[model] = endpoint
        return endpoint


async def _look(place: EndpointSource) -> None:
    try:
        place.models, place.problem = await place.endpoint.models(), ""
    except NoList as error:
        place.models, place.problem = [] if place.guessed else [UNNAMED], error.message
    except ModelError as error:
        place.models, place.problem = [], error.message
