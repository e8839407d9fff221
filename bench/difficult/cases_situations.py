"""Situations of ordinary work: commands that wait, stay or print a lot, files that are not plain text, odd names,
links, conflicts, and calls as models write them."""

import json
from pathlib import Path
from typing import Any

from bench.difficult.case import HELLO, Asked, Case, Step, writes
from bench.difficult.cases_work import does, edit_of
from bench.difficult.wire import Answer, Json, calls, fragment, says

CONFLICT = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n"


def _heard(*words: str, unheard: str = "") -> Any:
    """The model must have read these words in a result."""

    def check(requests: list[Asked]) -> str:
        seen = json.dumps([each.results for each in requests], ensure_ascii=False)
        missing = [each for each in words if each not in seen]
        if missing:
            return f"the model did not read {missing[0]!r}"
        return f"the model read {unheard!r}" if unheard and unheard in seen else ""

    return check


def _small(most: int) -> Any:
    def check(requests: list[Asked]) -> str:
        largest = max(len(json.dumps(each.body)) for each in requests)
        return "" if largest < most else f"a request had {largest} characters"

    return check


def _named(name: str, kind: str, **args: Any) -> Step:
    """The agent's own tool for this, with one more field."""

    def step(asked: Asked) -> Answer:
        tool, made = asked.call(kind, **args)
        return calls(fragment(tool, json.dumps({**made, name: "Because it is needed."}), ident=f"call_{asked.number}"))

    return step


def _raw(change: Any) -> Step:
    """A write with its arguments in another form."""

    def step(asked: Asked) -> Answer:
        name, arguments = asked.call("write", path="out.txt", content=HELLO)
        return calls(fragment(name, change(arguments), ident=f"call_{asked.number}"))

    return step


def _python(arguments: Json) -> str:
    return repr(arguments)


def _bare(arguments: Json) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in arguments.items()) + ",}"


def _commented(arguments: Json) -> str:
    return "{ // the file\n" + json.dumps(arguments)[1:]


def _other_tool(name: str, **args: Any) -> Step:
    """A tool of another agent, which this one may not have."""
    return lambda asked: calls(fragment(name, json.dumps(args), ident=f"call_{asked.number}"))


def _think(asked: Asked) -> Answer:
    name, arguments = asked.write()
    call = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
    return says(f"<think>I write the file.\n{call}")


def _links(folder: Path) -> None:
    (folder / "real.txt").write_text("one\n")
    (folder / "link.txt").symlink_to("real.txt")
    (folder / "broken.txt").symlink_to("nothing.txt")


def _many_files(folder: Path) -> None:
    for number in range(5000):
        (folder / f"file{number:04}.txt").write_text("x\n")


def _decomposed(folder: Path) -> None:
    (folder / "cafe\u0301.txt").write_text("found it\n")


CASES = [
    Case("stdin-read", [does("execute", command='read x; echo "got:$x"'), writes()], check=_heard("got:")),
    Case("stdin-cat", [does("execute", command="cat; echo after"), writes()], check=_heard("after")),
    Case("stdin-python", [does("execute", command="python3 -c 'print(input())'"), writes()], check=_heard("EOFError")),
    Case("daemon", [does("execute", command="sleep 300 & echo started"), writes()], check=_heard("started")),
    Case(
        "daemon-nohup",
        [does("execute", command="nohup sleep 300 > /dev/null 2>&1 & echo started"), writes()],
        check=_heard("started"),
    ),
    Case(
        "daemon-setsid", [does("execute", command="setsid sleep 300 & echo started"), writes()], check=_heard("started")
    ),
    Case(
        "progress-bar",
        [
            does("execute", command="for i in $(seq 3000); do printf '\\r%d of 3000 done' $i; done; echo; echo end"),
            writes(),
        ],
        check=_small(60_000),
    ),
    Case("colors", [does("execute", command="printf '\\033[31mred\\033[0m\\n'"), writes()], check=_heard("red")),
    Case("unknown-command", [does("execute", command="frobnicate"), writes()], check=_heard("not found")),
    Case("killed-command", [does("execute", command="kill -9 $$"), writes()]),
    Case(
        "heredoc",
        [does("execute", command="cat <<'E' > out.txt\nhello from the model\nE")],
        made={"out.txt": b"hello from the model\n"},
    ),
    Case(
        "pager",
        [does("execute", command="git init -q . && git help -a | head -3; git log; echo end"), writes()],
        check=_heard("end"),
    ),
    Case(
        "cd",
        [does("execute", command="mkdir -p sub && cd sub && pwd"), does("execute", command="touch here"), writes()],
    ),
    Case("long-line", [does("read", path="a.js"), writes()], {"a.js": b"x=1;" * 100_000}, check=_small(400_000)),
    Case("huge-file", [does("read", path="a.js"), writes()], {"a.js": b"x = 1\n" * 1_000_000}, check=_small(1_000_000)),
    Case("many-files", [does("execute", command="ls"), writes()], prepare=_many_files, check=_small(400_000)),
    Case("binary-read", [does("read", path="a.bin"), writes()], {"a.bin": bytes(range(256)) * 64}),
    Case("no-newline", edit_of("a.txt", "two", "three"), {"a.txt": b"one\ntwo"}, {"a.txt": b"one\nthree"}),
    Case("read-folder", [does("read", path="."), writes()]),
    Case("missing-file", [does("read", path="nothing.txt"), writes()]),
    Case("dash-name", edit_of("-rf.txt", "one", "two"), {"-rf.txt": b"one\n"}, {"-rf.txt": b"two\n"}),
    Case("conflict", edit_of("a.txt", CONFLICT, "b\n"), {"a.txt": CONFLICT.encode()}, {"a.txt": b"b\n"}),
    Case("through-a-link", edit_of("link.txt", "one", "two"), made={"real.txt": b"two\n"}, prepare=_links),
    Case("broken-link", [does("read", path="broken.txt"), writes()], prepare=_links),
    Case("decomposed-name", [does("read", path="café.txt"), writes()], prepare=_decomposed, check=_heard("found it")),
    Case(
        "curly-quotes",
        edit_of("a.txt", 'say "hi" now', 'say "hi" then'),
        {"a.txt": "say “hi” now\n".encode()},
        {"a.txt": "say “hi” then\n".encode()},
    ),
    Case(
        "decomposed-text",
        edit_of("a.txt", "café = 1", "café = 2"),
        {"a.txt": "cafe\u0301 = 1\n".encode()},
        {"a.txt": "cafe\u0301 = 2\n".encode()},
    ),
    Case(
        "tabs",
        edit_of("a.py", "    if x:\n        y()", "    if x:\n        z()"),
        {"a.py": b"def f():\n\tif x:\n\t\ty()\n"},
        {"a.py": b"def f():\n\tif x:\n\t\tz()\n"},
    ),
    Case("python-literal", [_raw(_python)]),
    Case("bare-names", [_raw(_bare)]),
    Case("comments", [_raw(_commented)]),
    Case("extra-field", [_named("explanation", "write", path="out.txt", content=HELLO)]),
    Case(
        "tool-of-claude",
        [_other_tool("Bash", command="printf made > other.txt", description="x"), writes()],
        made={"out.txt": HELLO.encode(), "other.txt": b"made"},
    ),
    Case(
        "tool-of-codex",
        [_other_tool("shell", command=["bash", "-lc", "printf made > other.txt"]), writes()],
        made={"out.txt": HELLO.encode(), "other.txt": b"made"},
    ),
    Case("call-in-open-think", [_think]),
    Case("long-ids", [lambda asked: calls(fragment(*asked.write(), ident="x" * 90))]),
]
