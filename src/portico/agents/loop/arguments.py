"""The arguments of a tool call as models write them: JSON, and what comes close to it."""

import ast
import json
import re
from typing import Any

from portico.agents.loop import lenient_json
from portico.kernel.events import Json
from portico.surrogates import repair

_FENCE = re.compile(r"\s*```[a-z]*\s*(.*?)\s*```\s*", re.DOTALL)
NESTING_MAX = 200
"""Brackets and signs of a Python literal."""


class NoArguments(ValueError):
    """The text is no JSON object. The message goes back to the model."""


def parse(text: str) -> Json:
    """Strict JSON first. Then the usual deviations: an empty text, JSON in a string, in a fence, after an empty object,
    with comments, trailing commas, single quotes or bare names, or a Python literal."""
    text = repair(text.strip() or "{}")
    if (fenced := _FENCE.fullmatch(text)) is not None:
        text = fenced[1]
    try:
        value = _load(text)
    except (ValueError, RecursionError) as error:
        value = _lenient(text)
        if value is None:
            raise NoArguments(f"not JSON: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NoArguments("not a JSON object")
    return value


def _load(text: str) -> Any:
    value = json.loads(text, strict=False)
    return json.loads(value, strict=False) if isinstance(value, str) and value.strip().startswith("{") else value


def _lenient(text: str) -> Any:
    for attempt in (_several, lenient_json.loads, _python):
        try:
            value = attempt(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _several(text: str) -> Any:
    """Some servers send an empty object before the real one, or the same one twice."""
    decoder, at, found = json.JSONDecoder(strict=False), 0, []
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    filled = [value for value in found if value]
    if any(value != filled[0] for value in filled[1:]):
        raise ValueError("several different objects")
    return filled[0] if filled else {}


def _python(text: str) -> Any:
    return ast.literal_eval(text) if is_flat(text) else None


def is_flat(text: str) -> bool:
    """Whether Python's parser may read it: deep nesting damages the parser of Python 3.11 for the whole process
    (`SystemError: AST constructor recursion depth mismatch`)."""
    return len(text) < 100_000 and sum(map(text.count, "([{-+~")) < NESTING_MAX


def canonical(name: str, tools: tuple[str, ...]) -> str:
    """The offered tool that a name means: models add prefixes (`functions.readFiles`, `default_api:readFiles`),
    numbers (`readFiles:0`) or write `read_files` or `read_file`. A name that means none stays as it is."""
    if name in tools:
        return name
    short = re.sub(r":\d+$", "", name.strip())
    for candidate in (short, re.split(r"[.:/]", short)[-1]):
        if candidate in tools:
            return candidate
        for form in (_letters, _singular):
            found = [tool for tool in tools if form(tool) == form(candidate)]
            if len(found) == 1:
                return found[0]
    return name


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _singular(name: str) -> str:
    return _letters(name).removesuffix("s")
