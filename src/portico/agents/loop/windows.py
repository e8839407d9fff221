"""The context window of a model in tokens: from its endpoint, from a setting, or from an error that named it."""

import logging
import re
from pathlib import Path
from typing import Any

import msgspec

from portico.kernel.events import Json
from portico.server.home import write_private

CHARS_PER_TOKEN = 3.0
"""On the safe side, until an answer reports how many tokens a request had: code has fewer characters to a token."""
RATIOS = (1.5, 6.0)
"""What is believed of that."""
SHARE = 0.85
"""Of the window that a request may take before the conversation is summarised."""
ANSWER_TOKENS = 8192
"""Kept free for the answer, at most a quarter of the window."""
UNKNOWN_CHARS = 200_000
"""Of a model whose window is not known: about 50,000 tokens."""
SHRINK = 0.6
"""Of a request that was too long for a window that the error did not name."""
_FIELDS = ("loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length")
logger = logging.getLogger("portico.agents.loop")


def listed(entry: Json) -> int | None:
    """From an entry of `/models`: vLLM, OpenRouter, Groq, LM Studio, Mistral, llama.cpp."""
    nested = [entry.get(name) for name in ("top_provider", "meta", "limits")]
    for each in (entry, *(found for found in nested if isinstance(found, dict))):
        for name in (*_FIELDS, "n_ctx", "n_ctx_train"):
            if isinstance(value := each.get(name), int) and value > 0:
                return value
    return None


def of_llama_cpp(props: Any) -> int | None:
    """From `/props`: what the server was started with, which may be less than the model was trained for."""
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    value = settings.get("n_ctx") if isinstance(settings, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def of_ollama(shown: Any) -> int | None:
    """From `/api/show`: the parameter that was set, else what the model was trained for."""
    if not isinstance(shown, dict):
        return None
    found = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    if found is not None:
        return int(found[1])
    info = shown.get("model_info")
    pairs = info.items() if isinstance(info, dict) else ()
    return next((value for key, value in pairs if key.endswith(".context_length") and isinstance(value, int)), None)


def of_price_list(model: str) -> int | None:
    """From the price list (extra `portico[prices]`), which also knows windows. It takes a third of a second the first
    time, so it is asked in a thread, and only for a long conversation."""
    try:
        from genai_prices.data_snapshot import get_snapshot

        _, found = get_snapshot().find_provider_model(model.rpartition("/")[2], None, None, None)
    except (ImportError, LookupError):
        return None
    return found.context_window


class Windows:
    """What was learned of the windows of models, kept in a file of the agent."""

    def __init__(self, home: Path) -> None:
        self._path = home / "agents" / "loop" / "windows.json"
        self._learned: dict[str, int] | None = None
        self._guessed: dict[str, int] = {}
        self._ratios: dict[str, float] = {}

    @property
    def _known(self) -> dict[str, int]:
        if self._learned is None:
            try:
                self._learned = msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])
            except FileNotFoundError:
                self._learned = {}
            except (OSError, msgspec.DecodeError) as error:
                logger.warning("what was learned about context windows cannot be read: %s", error)
                self._learned = {}
        return self._learned

    def tokens(self, model: str, reported: int | None) -> int | None:
        """An error was the last word: an endpoint may report more than it takes."""
        learned = self._guessed.get(model) or self._known.get(model)
        return min(learned, reported) if learned and reported else learned or reported

    def ratio(self, model: str) -> float:
        return self._ratios.get(model, CHARS_PER_TOKEN)

    def count(self, model: str, chars: int, tokens: int) -> None:
        """An answer reported how many tokens a request had."""
        if tokens > 200:
            self._ratios[model] = min(max(chars / tokens, RATIOS[0]), RATIOS[1])

    def learn(self, model: str, tokens: int, named: bool) -> None:
        """A window that an error named is kept in the file; a guess only until the host stops."""
        self._guessed[model] = tokens
        if not named:
            return
        self._known[model] = tokens
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._path, msgspec.json.encode(self._known))
        except OSError as error:
            logger.warning("what was learned about context windows cannot be written: %s", error)

    def chars(self, model: str, reported: int | None) -> int | None:
        """Characters that a request may have; None: the window is not known."""
        window = self.tokens(model, reported)
        if window is None:
            return None
        room = min(window * SHARE, window - min(ANSWER_TOKENS, window / 4))
        return int(room * self.ratio(model))
