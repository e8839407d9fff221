"""Ordinary work that is difficult: files that are not plain LF, bad calls, long output, many steps, a second turn."""

import json
from typing import Any

from bench.difficult.case import HELLO, Asked, Case, Step, always, writes
from bench.difficult.wire import Answer, Json, calls, fragment, says


def _call(asked: Asked, kind: str, **args: Any) -> Answer:
    name, made = asked.call(kind, **args)
    return calls(fragment(name, json.dumps(made), ident=f"call_{asked.number}"))


def does(kind: str, **args: Any) -> Step:
    return lambda asked: _call(asked, kind, **args)


def edit_of(path: str, old: str, new: str) -> list[Step]:
    return [does("read", path=path), does("edit", path=path, old=old, new=new)]


def _bad_json(asked: Asked) -> Answer:
    name, args = asked.write("half.txt")
    return calls(fragment(name, args[:-1] + ', "broken'))


def _trailing_comma(asked: Asked) -> Answer:
    name, args = asked.write()
    return calls(fragment(name, args[:-1] + ",}"))


def _good_and_bad(asked: Asked) -> Answer:
    name, args = asked.write("two.txt")
    return calls(fragment(name, args, ident="a"), fragment(name, "{nonsense", ident="b", index=1))


def _unknown_tool(asked: Asked) -> Answer:
    return calls(fragment("teleport", '{"to": "moon"}'))


def _missing_argument(asked: Asked) -> Answer:
    name, _ = asked.write()
    return calls(fragment(name, "{}"))


def _three_writes(asked: Asked) -> Answer:
    made = [asked.write(f"{number}.txt") for number in range(3)]
    return calls(*(fragment(*each, ident=f"c{index}", index=index) for index, each in enumerate(made)))


def _many(count: int) -> list[Step]:
    return [writes(path=f"f{number}.txt", content=str(number)) for number in range(count)]


def _small_requests(requests: list[Asked]) -> str:
    largest = max(len(json.dumps(each.body)) for each in requests)
    return "" if largest < 1_000_000 else f"a request had {largest} bytes"


def _all_answered(requests: list[Asked]) -> str:
    """Every call that went back has a result, with its id."""
    for each in requests:
        called = [call["id"] for message in each.messages for call in message.get("tool_calls") or ()]
        answered = [message.get("tool_call_id") for message in each.messages if message["role"] == "tool"]
        if sorted(called) != sorted(str(ident) for ident in answered):
            return f"calls {called} have results {answered}"
    return ""


def _append_only(requests: list[Asked]) -> str:
    """The first request of turn 2 begins with nearly all of the last one of turn 1."""
    turns = [[each for each in requests if _prompts(each.body) == count] for count in (1, 2)]
    if not all(turns):
        return "there were not two turns"
    before, after = (json.dumps(each.messages) for each in (turns[0][-1], turns[1][0]))
    same = next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before))
    return "" if same >= 0.95 * (len(before) - 1) else f"only {same} of {len(before)} characters are the same"


def _prompts(body: Json) -> int:
    text = json.dumps(body["messages"])
    return ("Please do it." in text) + ("And now the rest." in text)


LATIN = "größe = 1\nmaß = 2\n".encode("latin-1")
UTF16 = "one = 1\ntwo = 2\n".encode("utf-16")
CASES = [
    Case(
        "crlf-edit",
        edit_of("a.py", "one = 1\ntwo = 2", "one = 1\ntwo = 3"),
        {"a.py": b"one = 1\r\ntwo = 2\r\n"},
        {"a.py": b"one = 1\r\ntwo = 3\r\n"},
    ),
    Case("latin1-edit", edit_of("a.py", "maß = 2", "maß = 3"), {"a.py": LATIN}, {"a.py": LATIN.replace(b"2", b"3")}),
    Case(
        "utf16-edit",
        edit_of("a.py", "two = 2", "two = 3"),
        {"a.py": UTF16},
        {"a.py": "one = 1\ntwo = 3\n".encode("utf-16")},
    ),
    Case(
        "bom-edit",
        edit_of("a.py", "one = 1", "one = 2"),
        {"a.py": b"\xef\xbb\xbfone = 1\n"},
        {"a.py": b"\xef\xbb\xbfone = 2\n"},
    ),
    Case(
        "trailing-space-edit",
        edit_of("a.py", "one = 1\ntwo = 2", "one = 1\ntwo = 3"),
        {"a.py": b"one = 1  \ntwo = 2\n"},
        {"a.py": b"one = 1\ntwo = 3\n"},
    ),
    Case(
        "indent-edit",
        edit_of("a.py", "if x:\n    y()", "if x:\n    z()"),
        {"a.py": b"def f():\n    if x:\n        y()\n"},
        {"a.py": b"def f():\n    if x:\n        z()\n"},
    ),
    Case("odd-name", [writes(path="a dir/ü 😀.txt")], made={"a dir/ü 😀.txt": HELLO.encode()}),
    Case("bad-json-then-good", [_bad_json, writes()], absent=["half.txt"]),
    Case("trailing-comma", [_trailing_comma, writes(path="other.txt")]),
    Case(
        "good-and-bad-call",
        [_good_and_bad, writes()],
        made={"out.txt": HELLO.encode(), "two.txt": HELLO.encode()},
        check=_all_answered,
    ),
    Case("unknown-tool", [_unknown_tool, writes()], check=_all_answered),
    Case("missing-argument", [_missing_argument, writes()], check=_all_answered),
    Case(
        "three-calls-of-one-name",
        [_three_writes],
        made={f"{n}.txt": HELLO.encode() for n in range(3)},
        check=_all_answered,
    ),
    Case("failing-command", [does("execute", command="echo oops; exit 3"), writes()]),
    Case(
        "huge-output",
        [does("execute", command="yes 'a line of output' | head -c 6000000"), writes()],
        check=_small_requests,
    ),
    Case("binary-output", [does("execute", command="head -c 3000 /dev/urandom"), writes()]),
    Case("forty-steps", _many(40), made={f"f{n}.txt": str(n).encode() for n in range(40)}),
    Case(
        "two-turns",
        [writes(), always(says("First part.")), writes(path="two.txt")],
        made={"out.txt": HELLO.encode(), "two.txt": HELLO.encode()},
        prompts=("Please do it.", "And now the rest."),
        check=_append_only,
    ),
]
