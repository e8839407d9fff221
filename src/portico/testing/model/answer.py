"""From a step of a script to an answer that any wire format can write down."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from portico.testing.model import script
from portico.testing.model.request import ModelRequest, tokens, without_injected
from portico.testing.model.script import Error, Finish, Script, ScriptedUsage, Step
from portico.testing.model.search import call_found, look_for
from portico.testing.model.tools import choose, example

DONE = Step(say="Done.")
_WORD = re.compile(r"\s*\S+\s*|\s+")
_HAS = re.compile(r"\{\{has (.+?)\}\}")
# Small enough that arguments arrive in several deltas, as they do from real models.
_ARGUMENT_PIECE = 16
_ECHO = 120


class ToolCall(Struct, frozen=True):
    id: str
    name: str
    input: dict[str, Any] | str
    freeform: bool = False

    @property
    def arguments(self) -> str:
        return self.input if isinstance(self.input, str) else msgspec.json.encode(self.input).decode()

    @property
    def mapping(self) -> dict[str, Any]:
        """For formats whose arguments are an object; text that is none is wrapped, they have no way to break it."""
        if isinstance(self.input, dict):
            return self.input
        try:
            value = msgspec.json.decode(self.input)
        except msgspec.DecodeError:
            value = None
        return value if isinstance(value, dict) else {"input": self.input}

    def pieces(self) -> Iterator[str]:
        text = self.arguments
        for start in range(0, len(text), _ARGUMENT_PIECE):
            yield text[start : start + _ARGUMENT_PIECE]


class ModelAnswer(Struct, frozen=True):
    request: ModelRequest
    number: int  # of the request on this server, from 1
    created: int
    text: Sequence[str]
    reason: Sequence[str]
    calls: Sequence[ToolCall]
    usage: ScriptedUsage
    finish: Finish

    @property
    def id(self) -> str:
        return f"{self.request.fingerprint}_{self.number}"

    def says(self) -> Iterator[str]:
        return map(_stamp, self.text)

    def reasons(self) -> Iterator[str]:
        return map(_stamp, self.reason)


class Frame(NamedTuple):
    data: bytes
    delta: bool = False


class Format(Protocol):
    """One wire format: a module with these functions."""

    def parse(self, body: bytes, target: str) -> ModelRequest: ...
    def whole(self, answer: ModelAnswer) -> dict[str, Any]: ...
    def stream(self, answer: ModelAnswer) -> Iterator[Frame]: ...
    def error(self, error: Error) -> dict[str, Any]: ...
    def stream_error(self, answer: ModelAnswer, error: Error) -> bytes: ...


def choose_step(request: ModelRequest, rules: Script, counts: Counter[str]) -> Step:
    """The step that answers this request; counts the keys of `first` on the way."""
    step = _pick(request, rules)
    while step.first:
        counts[step.first.key] += 1
        if counts[step.first.key] > step.first.times:
            break
        step = step.first.step
    return step


def answer(request: ModelRequest, step: Step, number: int, clock: Callable[[], float] = time.time) -> ModelAnswer:
    calls, problems = _calls(request, step, number)
    said = [*_pieces(step.say, request) * step.repeat, *problems]
    reason = _pieces(step.reason, request)
    if not said and step.calls and not calls:
        said = _pieces(_echo(request).say, request)
    return ModelAnswer(
        request=request,
        number=number,
        created=int(clock()),
        text=said,
        reason=reason,
        calls=calls,
        usage=step.usage or _usage(request, said, reason, calls),
        finish=step.finish or ("tools" if calls else "stop"),
    )


def _pick(request: ModelRequest, rules: Script) -> Step:
    for rule in rules.rules:
        if rule.fits(request.prompt, request.model, bool(request.tools)):
            return _at(rule.steps, request)
    if steps := script.find(request.prompt).steps:
        step = _at(steps, request)
        return _echo(request) if _is_side_question(request, step) else step
    return _at(rules.default, request) if rules.default else _echo(request)


def _at(steps: Sequence[Step], request: ModelRequest) -> Step:
    """Return the current step. After the last one it is `DONE`: repeating a step that calls a tool would never end."""
    return steps[request.position] if request.position < len(steps) else DONE


def _is_side_question(request: ModelRequest, step: Step) -> bool:
    """Agents classify and title a prompt by asking for a schema without tools, and try again and again on prose."""
    if request.tools or request.schema is None or not step.say:
        return False
    try:
        msgspec.json.decode(step.say if isinstance(step.say, str) else "".join(step.say))
    except msgspec.DecodeError:
        return True
    return False


def _echo(request: ModelRequest) -> Step:
    if request.schema is not None:
        return Step(say=msgspec.json.encode(example(request.schema)).decode())
    found = script.find(request.prompt)
    if found.problem:
        return Step(say=f"The script in this prompt is not valid: {found.problem}")
    words = " ".join(without_injected(found.rest).split())
    return Step(say=f"You said: {words[:_ECHO]}" if words else "Done.")


def _calls(request: ModelRequest, step: Step, number: int) -> tuple[list[ToolCall], list[str]]:
    """The calls, and in words those that cannot be made. Who declares no tools never gets a call."""
    calls: list[ToolCall] = []
    problems: list[str] = []
    for index, call in enumerate(step.calls if request.tools else ()):
        choice = choose(call, request.tools) or call_found(call, request)
        call_id = call.id or request.call_id(number, index)
        if choice is None and (choice := look_for(call, request)) is not None:
            call_id = request.search_id(number, index)
        if choice is None:
            names = ", ".join(tool.name for tool in request.tools)
            problems.append(f"\nNo declared tool fits {msgspec.json.encode(call).decode()}; there are: {names}.")
        else:
            calls.append(ToolCall(id=call_id, name=choice.name, input=choice.args, freeform=choice.freeform))
    return calls, problems


def _pieces(text: str | list[str], request: ModelRequest) -> list[str]:
    if isinstance(text, str):
        text = _HAS.sub(lambda found: _has(found[1], request), text)
    deltas = _WORD.findall(text) if isinstance(text, str) else text
    return [piece.replace("{{result}}", request.result).replace("{{model}}", request.model) for piece in deltas]


def _has(pattern: str, request: ModelRequest) -> str:
    """Return `yes` if a message of the request matches the pattern, else `no`."""
    try:
        return "yes" if any(re.search(pattern, message.text) for message in request.messages) else "no"
    except re.error as error:
        return f"{pattern!r} is no pattern: {error}"


def _stamp(piece: str) -> str:
    """`{{now}}` becomes the time at which this delta is written, so that a reader can measure how old it is."""
    return piece.replace("{{now}}", str(time.time_ns() // 1_000_000))


def _usage(request: ModelRequest, said: list[str], reason: list[str], calls: list[ToolCall]) -> ScriptedUsage:
    thought = tokens("".join(reason)) if reason else 0
    spoken = tokens("".join(said) + "".join(call.arguments for call in calls))
    return ScriptedUsage(input=request.tokens, output=spoken + thought, reasoning=thought)
