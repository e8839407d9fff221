"""What an endpoint's error means: try again, wait, leave a feature out, shorten the conversation, or give up."""

import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from portico.agents.loop.reply import ERROR_CHARS, Feature, ModelError, error_words

KEY_HINT = "Set another one: OPENAI_API_KEY, or api_key_env in [agents.loop]."
BODY_BYTES = 64 * 1024
"""Of an error that is read."""


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_REJECTS = _any(
    r"not? support|unsupported|n't support|does ?n[o']t",
    r"(?:not|n't) (?:enabled|available|allowed|permitted|implemented|supported)",
    r"only .{0,30}(?:allowed|supported)|deprecated|use '?max_completion_tokens",
    r"can ?not|can't|unknown|unrecogni[sz]ed|unexpected|\bextra |additional propert|requires?|no endpoints",
)
_ROLES = _any(
    r"roles? must (?:be )?alternat|must alternate|unexpected role|expected last role",
    r"consecutive (?:user|assistant|messages)",
    r"first (?:message|content) (?:must|should) be|(?:must|should) (?:start|begin) with (?:a |the )?user|same role",
)
"""Of chat templates and of endpoints with rules for the order of roles. A template that fails is often a 500."""
_SYSTEM = _any(
    r"(?:system|developer)['\"`]? ?(?:role|message|prompt|instruction)",
    r"\brole\b.{0,30}['\"`](?:system|developer)",
    r"only user,? .{0,20}roles? (?:are|is) supported",
)
_MOST = _any(
    r"max_tokens: \d+ > (\d+)",
    r"at most (\d+) (?:completion|output) tokens",
    r"max_tokens.{0,60}(?:<=|less than or equal to|range .{0,20}is \[\d+, ?) ?(\d+)",
)
"""The longest answer of a model that was asked for a longer one."""
_FEATURES: dict[Feature, re.Pattern[str]] = {
    "temperature": _any("temperature"),
    "max_tokens": _any("max_tokens"),
    "system": _SYSTEM,
    "extras": _any(
        r"\breasoning(?:_content|_details)?\b",
        "thought_signature|extra_content",
        r"messages?\W+\d+\W.{0,80}(?:propert|extra)",
    ),
    "pictures": _any("image", "vision", "multimodal", "mmproj"),
    "usage": _any("stream_options", "include_usage"),
    "tools": _any(
        r"\btools?\b", r"tool[ _-](?:use|calls?|calling|choice)", r"\bfunctions?\b", "function[ _-]call", "jinja"
    ),
    "schema": _any("response_format", "json_schema", "structured output", "schema", "grammar"),
}
_TOO_LONG = _any(
    r"context[ _-]?(?:length|window|size|limit)|maximum context|n_ctx",
    r"max(?:imum)?[ _-]?(?:model|prompt|input|sequence)[ _-]?(?:len|tokens)",
    r"(?:prompt|input) (?:is )?too (?:long|large)|too many (?:input )?tokens|reduce the length",
    r"exceeds? the (?:available )?context|input token count|exceeds? .*(?:token|context)",
    r"request[_ ]too[_ ]large|too large for (?:model|this)|string_above_max_length|longer than the (?:model|maximum)",
)
_RATE = _any(r"per[ -](?:minute|day|hour)", "rate limit", r"\b[tr]p[md]\b", "quota")
_NUMBER = r"(\d[\d,_]{3,})"
_WINDOW = (
    _any(rf"(?:maximum context length|context (?:window|length|size|limit)|max_model_len|n_ctx)\D{{0,40}}?{_NUMBER}"),
    _any(rf"\d[\d,_]*\s*tokens?\s*>\s*{_NUMBER}"),
    _any(rf"exceeds? the (?:maximum|limit)\D{{0,60}}{_NUMBER}"),
    _any(rf"maximum (?:number of tokens allowed|tokens?)\D{{0,20}}{_NUMBER}"),
)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached", "credit_balance_too_low")
"""Codes of an account without credit. Vendors send them as 429, but a retry does not help."""
_LACKING = (400, 404, 422, 501)
"""A request with a feature that the endpoint does not know. 5xx are failures, not answers."""


def refusal(name: str, url: str, status: int, body: bytes, headers: Mapping[str, str]) -> ModelError:
    words, code = _words(body)
    text = words.rstrip(".")
    message = f"{name} answered {status}: {text}."
    if status in (401, 403) and not _too_long(status, words, code):
        return ModelError(f"{name} at {url} does not accept the key ({status}): {text}. {KEY_HINT}", refused=True)
    if status == 404 and not url.endswith("/v1"):
        message += " (Most addresses end in /v1.)"
    if _too_long(status, words, code):
        return ModelError(message, too_long=True, window=window(words))
    again = status in (408, 409, 425, 429) or status >= 500
    return ModelError(
        message,
        again=again and status != 501 and code not in _SPENT,
        retry_after=wait_asked(headers, words),
        lacks=_lacks(status, words),
        most=_most(words),
    )


def in_stream(name: str, error: Any) -> ModelError:
    """An error inside a stream or in the body of a 200."""
    words = error_words(error)
    code = error.get("code") or error.get("type") if isinstance(error, dict) else ""
    status = code if isinstance(code, int) else 0
    message = f"{name} failed in mid-stream: {words}"
    if _too_long(status or 400, words, str(code)):
        return ModelError(message, too_long=True, window=window(words))
    final = status in (400, 401, 403, 404, 422) or str(code) in ("invalid_request_error", "authentication_error")
    return ModelError(message, again=not final)


def _too_long(status: int, words: str, code: str) -> bool:
    if status == 413 or code in ("context_length_exceeded", "request_too_large", "exceed_context_size_error"):
        return True
    return status in (400, 403, 422, 500) and _TOO_LONG.search(words) is not None and not _RATE.search(words)


def window(words: str) -> int | None:
    """The context window in tokens that an error names."""
    for pattern in _WINDOW:
        found = pattern.search(words)
        if found is not None:
            return int(re.sub(r"[,_]", "", found[1]))
    return None


def _lacks(status: int, words: str) -> Feature | None:
    """Which optional feature the endpoint rejects, where it clearly does so."""
    if status in (*_LACKING, 500) and _ROLES.search(words):
        return "alternation"
    if status in (*_LACKING, 500) and _SYSTEM.search(words) and _REJECTS.search(words):
        return "system"
    if status in _LACKING and _most(words):
        return "max_tokens"
    if status not in _LACKING or _REJECTS.search(words) is None:
        return None
    return next((each for each, signs in _FEATURES.items() if signs.search(words)), None)


def _most(words: str) -> int | None:
    found = _MOST.search(words)
    return int(next(each for each in found.groups() if each)) if found is not None else None


def wait_asked(headers: Mapping[str, str], words: str = "", now: float | None = None) -> float | None:
    """Seconds that the endpoint asks to wait: `retry-after-ms`, `Retry-After` as a number or an HTTP date, else in
    the words of the error (OpenAI: "try again in 1.2s", Gemini: "retry in 34.07s")."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    if text:
        try:
            at = email.utils.parsedate_to_datetime(text).timestamp()
        except ValueError:
            return None
        return max(0.0, at - (time.time() if now is None else now))
    asked = re.search(r"(?:try again|retry) in (\d+(?:\.\d+)?) ?(ms|s\b|sec|m\b|min)?", words, re.IGNORECASE)
    if asked is None:
        return None
    return float(asked[1]) * {"ms": 0.001, "m": 60.0, "min": 60.0}.get((asked[2] or "s").lower(), 1.0)


def _number(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _words(body: bytes) -> tuple[str, str]:
    """The error in the endpoint's words, and its code."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body[:ERROR_CHARS].decode("utf-8", "replace").strip() or "nothing", ""
    if isinstance(value, list) and value:  # Gemini wraps its errors in a list
        value = value[0]
    error = value.get("error", value) if isinstance(value, dict) else value
    code = str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""
    if isinstance(error, dict) and not error.get("message"):
        error = error.get("detail") or error
    return error_words(error), code
