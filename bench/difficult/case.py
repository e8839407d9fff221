"""What a case is: what the person asks for, what the endpoint answers, and what has to be true afterwards."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.difficult.wire import Answer, Json, calls, fragment
from portico.testing.model.request import RequestTool
from portico.testing.model.script import ScriptedCall
from portico.testing.model.tools import choose

HELLO = "hello from the model"


class Asked(Struct, frozen=True):
    """One request of an agent."""

    body: Json
    number: int
    """Of this case, from 0."""
    path: str = ""

    @property
    def messages(self) -> list[Json]:
        return list(self.body["messages"])

    def call(self, kind: str, **args: Any) -> tuple[str, Json]:
        """The agent's own tool for this, with its own names of the arguments."""
        tools = [each.get("function", each) for each in self.body.get("tools", [])]
        declared = [RequestTool(each["name"], each.get("parameters") or {}) for each in tools]
        chosen = choose(ScriptedCall(kind=kind, args=args), declared)  # type: ignore[arg-type]
        if chosen is None or isinstance(chosen.args, str):
            raise LookupError(f"the agent has no tool to {kind}")
        return chosen.name, chosen.args

    def write(self, path: str = "out.txt", content: str = HELLO) -> tuple[str, str]:
        name, args = self.call("write", path=path, content=content)
        return name, json.dumps(args)

    @property
    def last_answer(self) -> Json:
        """The last assistant's message that went back."""
        return next((each for each in reversed(self.messages) if each["role"] == "assistant"), {})

    @property
    def results(self) -> list[Json]:
        return [each for each in self.messages if each["role"] == "tool"]


Step = Callable[[Asked], Answer]


@dataclass(frozen=True)
class Case:
    name: str
    steps: Sequence[Step]
    """Answers to the requests with tools, in order; after the last one the model says `Done.`"""
    files: dict[str, bytes] = field(default_factory=dict)
    made: dict[str, bytes] = field(default_factory=lambda: {"out.txt": HELLO.encode()})
    """Files that must be there afterwards, with exactly this content."""
    absent: Sequence[str] = ()
    said: str = "Done."
    """Must be in what a person reads as the answer."""
    unsaid: str = ""
    """Must not be in it."""
    once: str = ""
    """Must be in it exactly once."""
    prepare: Callable[[Path], None] | None = None
    """Makes what is more than a file: links, folders, a repository."""
    prompts: Sequence[str] = ("Please do it.",)
    check: Callable[[list[Asked]], str] | None = None
    """Looks at all requests; returns what is wrong."""


def writes(**more: Any) -> Step:
    """A normal step that writes the file."""

    def step(asked: Asked) -> Answer:
        name, arguments = asked.write(**more)
        return calls(fragment(name, arguments, ident=f"call_{asked.number}"))

    return step


def always(answer: Answer) -> Step:
    return lambda asked: answer


def lay_out(case: Case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    if case.prepare is not None:
        case.prepare(folder)


def judge(case: Case, folder: Path, said: str, requests: list[Asked]) -> str:
    """What is wrong; empty: nothing."""
    for name, content in case.made.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.read_bytes() != content:
            return f"{name} has {path.read_bytes()[:60]!r}"
    if found := [name for name in case.absent if (folder / name).exists()]:
        return f"{found[0]} should not exist"
    if case.said not in said:
        return f"the answer is {said[-80:]!r}"
    if case.unsaid and case.unsaid in said:
        return f"the answer contains {case.unsaid!r}"
    if case.once and said.count(case.once) != 1:
        return f"the answer contains {case.once!r} {said.count(case.once)} times"
    return case.check(requests) if case.check is not None else ""
