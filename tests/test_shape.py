"""The size of the system as a reader meets it: what one message passes, import cycles, registration, words.

Each figure has a goal (docs/architecture.md). Until it is reached, the limit here is the figure of today: it may only
get smaller, so lower it with every change that allows it.
"""

import ast
import asyncio
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from portico.kernel.component import Spending
from portico.kernel.feature import receive_summaries
from tests.doors.standing import Standing, standing
from tests.test_imports import ROOT, imported, modules, name_of

REPOSITORY = ROOT.parents[1]

# -- one message ---------------------------------------------------------------------------------------------------

FUNCTIONS, FILES = 120, 40
"""What one message passes between the request and the agent, in a host that is warm and idle."""
PATH = ("kernel/", "server/", "doors/rest/", "agents/scripted.py")
"""Where it may pass: the kernel, the server with its gate, the door and the agent."""
CALLED = {
    "features/board/board.py": "the list of sessions follows their summaries (`receive_summaries`)",
    "features/budgets/budgets.py": "a turn waits until its budgets permit it (`Spending`)",
    "features/changes/captures.py": "the folder is captured before the first side effect (`FolderCaptures`)",
    "workspace/git.py": "the capture checks whether the folder is in a work tree",
}
"""Other files that it passes, and why. The kernel calls features only by declared methods. The list may only get
shorter."""


class Passed(NamedTuple):
    file: str
    function: str
    line: int
    declared: bool
    """It is not code of a feature that the kernel calls directly, or the kernel declares the method."""


async def test_one_message_passes_few_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("sniffio") is None:  # the test's client tries this import at each request
        monkeypatch.setitem(sys.modules, "sniffio", None)
    async with standing(tmp_path) as host:
        session = await host.start()
        for _ in range(3):  # what is imported, cached or opened once does not count
            await send(host, session)
        found = [await one(host, session) for _ in range(3)]
    seen = min(found, key=len)  # a periodic task may run during one of them
    files = {each.file for each in seen}
    assert (len(seen) <= FUNCTIONS, len(files) <= FILES) == (True, True), f"{len(seen)} functions in {len(files)} files"
    assert {file for file in files if not file.startswith(PATH)} == set(CALLED)
    assert [each for each in seen if not each.declared] == []


async def one(host: Standing, session: str) -> list[Passed]:
    await asyncio.gather(*host.server.host.tasks("turn "))  # the end of the last turn does not count
    return await traced(send(host, session))


async def send(host: Standing, session: str) -> None:
    answer = await host.http.post(f"/v1/sessions/{session}/messages", json={"text": "[[say:hello]]"})
    await (await host.server.host.get(session)).wait(answer.json()["turn"])


async def traced(work: Coroutine[Any, Any, object]) -> list[Passed]:
    """The functions of ours that run in this thread until the agent has the message, in order."""
    seen: dict[tuple[str, str, int], Passed] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code, file = frame.f_code, within(frame)
        if event == "call" and file and not code.co_name.startswith("<"):
            key = file, code.co_name, code.co_firstlineno
            if key not in seen:
                entered = not file.startswith(PATH) and within(frame.f_back).startswith(PATH)
                seen[key] = Passed(*key, not entered or declares(frame.f_locals.get("self"), code.co_name))
            if key[:2] == ("agents/scripted.py", "send"):
                sys.setprofile(None)

    sys.setprofile(note)
    try:
        await work
    finally:
        sys.setprofile(None)
    return [*seen.values()]


def within(frame: FrameType | None) -> str:
    """The file of a frame below our package; empty: it is not ours."""
    file = frame.f_code.co_filename if frame is not None else ""
    return file.removeprefix(f"{ROOT}/") if file.startswith(f"{ROOT}/") else ""


MARKS = ("__handles__", "__receives__", "__summaries__", "__guards__")


def declares(owner: object, method: str) -> bool:
    """Is this method marked, or one of an interface in `kernel/component.py`?"""
    of = type(owner)
    marked = any(hasattr(getattr(of, method, None), mark) for mark in MARKS)
    return marked or any(method in vars(base) for base in of.__mro__ if base.__module__ == "portico.kernel.component")


def test_only_declared_methods_pass() -> None:
    class Following(Spending):
        @receive_summaries
        def summary(self, ident: str, summary: object) -> None: ...
        def other(self) -> None: ...

    found = [declares(Following(), name) for name in ("summary", "start", "other")]
    assert (found, declares(None, "start")) == ([True, True, False], False)


# -- import cycles -------------------------------------------------------------------------------------------------

CYCLE = 12
"""Modules in the largest cycle, with imports inside of functions and for types."""


def graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports, wherever in the file."""
    files = {name_of(path): path for path in modules()}
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        names = imported(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        found[name] = {other for other in names if other in files and other != name}
    return found


def cycles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected groups of more than one module, largest first (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []
    for start in imports:
        if start in index:
            continue
        work = [(start, iter(sorted(imports[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            module, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(imports[other]))))
                    break
                if other in stack:
                    low[module] = min(low[module], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    group = set(stack[stack.index(module) :])
                    del stack[stack.index(module) :]
                    if len(group) > 1:
                        found.append(group)
    return sorted(found, key=len, reverse=True)


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}) == [
        {"a", "b", "c"},
        {"d", "e"},
    ]


def test_no_import_cycle_grows() -> None:
    largest = cycles(graph())[0]
    assert len(largest) <= CYCLE, sorted(largest)


# -- registration --------------------------------------------------------------------------------------------------


def test_features_declare_what_they_need() -> None:
    """There is no registry in the host where one feature looks up another (`host.part`)."""
    found = [
        f"{name_of(path)}:{number}"
        for path in modules()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bhost\.part\(", line)
    ]
    assert found == []


REGISTERS = re.compile(
    r"(?:\bcommits\.on|\.on_channel|\.on_batch|\blog\.on_commit|\bhost\.watch|\bcommands\.(?:handle|take|guard|subject))\("
)
"""The calls by which a callback receives commits, summaries or commands of a host."""
OTHERS = {
    "doors/ahp/connection/broker.py": "a door sends commits to its clients",
    "doors/ahp/connection/notices.py": "a door sends summaries to its clients",
    "doors/portal/live.py": "a door sends commits to its clients",
    "features/jobs/engine.py": "jobs are not a Feature: the settings choose their engine",
    "features/jobs/handlers.py": "jobs are not a Feature",
    "features/jobs/temporal.py": "jobs are not a Feature",
    "features/pairing/pairing.py": "it needs the address of the gate, which is opened after the host",
    "features/terminals/terminals.py": "the one subject of commands that the kernel does not know",
    "kernel/commits.py": "the dispatcher",
    "kernel/feature.py": "the declaration",
    "kernel/handlers.py": "the kernel's own commands",
    "kernel/host.py": "the sessions receive their events first",
    "kernel/ownership.py": "the owners of channels that features start",
    "server/meter.py": "metrics of the process",
    "server/telemetry.py": "traces of the process",
}
"""By file, why it registers a callback without declaring it in a `Feature`. The list may only get shorter."""


def test_features_register_by_their_declaration() -> None:
    found = {str(path.relative_to(ROOT)) for path in modules() if REGISTERS.search(path.read_text())}
    assert found == set(OTHERS)


def test_a_command_with_an_event_and_state_touches_few_files() -> None:
    """`session.pin`: four files of code; its tests and its documentation are the fifth and the sixth."""
    named = re.compile(r"\b(?:PinSession|SessionPinned|session\.pin(?:ned)?|pin_session)\b")
    found = {path: path.read_text() for path in modules() if named.search(path.read_text())}
    written = [path for path, text in found.items() if "do not edit" not in text.partition("\n")[0]]
    assert len(written) <= 4, written


# -- words ---------------------------------------------------------------------------------------------------------

LITERARY = re.compile(
    r"\b(hears?|heard|tells?|told|goes on|go on|going on|whoever|whatever|nobody|somebody|says?|said|stands?|stood|"
    r"takes? up|taken up|took up|at once|comes? back|came back|by itself|of its own|mend(s|ed)?|lets? go|"
    r"in one breath|meanwhile)\b",
    re.IGNORECASE,
)
"""Words that an engineer would not search for. Use the usual terms: subscribe, notify, return, continue, resume."""
PER_THOUSAND = {"src/portico": 1.2, "docs": 1.0, "README.md": 0.5, "web/src": 0.8}
"""By folder. The goal was 1.5 for each."""


PAGES = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""",
    re.DOTALL,
)
"""Comments, strings and templates of TypeScript: what readers of the code and users of the pages see."""


def prose(path: Path) -> str:
    """Comments and docstrings of Python, comments and texts of TypeScript, Markdown without its code."""
    text = path.read_text()
    if path.suffix == ".ts":
        return "\n".join(PAGES.findall(text))
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.DOTALL)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    parts = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            parts.append(node.value.value)
    return "\n".join(parts)


def per_thousand(*paths: Path) -> float:
    text = "\n".join(map(prose, paths))
    return 1000 * len(LITERARY.findall(text)) / max(1, len(text.split()))


def test_comments_and_texts_of_the_pages_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "view.ts"
    path.write_text('const told = 1; // nobody\n/** whoever */ render("It says so", `${said} \\` meanwhile`);\n')
    assert [found[0] for found in LITERARY.findall(prose(path))] == ["nobody", "whoever", "says", "said", "meanwhile"]


@pytest.mark.parametrize("where", PER_THOUSAND)
def test_the_words_are_those_that_engineers_search_for(where: str) -> None:
    root = REPOSITORY / where
    paths = [root] if root.is_file() else [*root.rglob("*.py"), *root.rglob("*.md"), *root.rglob("*.ts")]
    assert round(per_thousand(*paths), 1) <= PER_THOUSAND[where]


# -- commits -------------------------------------------------------------------------------------------------------

SINCE = "0169e63d43f0b287a75828a524170b962ecf3d15"
"""Commits after this one have searchable subjects."""
WRITTEN_BEFORE = {"web: test push, the login pages and the matrix of jobs; count lines of tests"}
"""Subjects that were written before the check, and rebased."""
SUBJECT = re.compile(r"[a-z0-9][\w./+-]*(?:, [a-z0-9][\w./+-]*)*: (?P<verb>[a-z][\w-]*)\b.*[^.\s]")
NO_IMPERATIVE = re.compile(r"(?!(?:embed|feed|need|seed|speed|bring|ping|alias|focus)\b)\w+(?:ed|ing|[^s]s)")


def wrong_with(subject: str) -> str:
    """What the subject of a commit has to change; empty: nothing."""
    if len(subject) > 72:
        return f"{len(subject)} characters, and 72 are allowed"
    match = SUBJECT.fullmatch(subject)
    if match is None:
        return "the form is 'area: imperative summary', without a full stop"
    if NO_IMPERATIVE.fullmatch(match["verb"]):
        return f"{match['verb']!r} is no imperative"
    found = LITERARY.search(subject)
    return f"{found[0]!r} is a word to avoid" if found else ""


@pytest.mark.parametrize(
    ("subject", "wrong"),
    [
        ("ahp: require approve to answer questions", ""),
        ("ahp, acp: send MCP servers again after a restart", ""),
        ("tests/live: process each line", ""),
        ("Require approve", "form"),
        ("ahp: Require approve", "form"),
        ("ahp: require approve.", "form"),
        ("ahp require approve", "form"),
        ("ahp: requires approve", "imperative"),
        ("ahp: fixed the answer", "imperative"),
        ("ahp: fixing the answer", "imperative"),
        ("ahp: tell whoever asks", "'tell'"),
        (f"ahp: require {'x' * 60}", "73 characters"),
    ],
)
def test_subjects_of_commits_are_checked(subject: str, wrong: str) -> None:
    assert wrong in wrong_with(subject)
    assert bool(wrong) == bool(wrong_with(subject))


def git(*arguments: str) -> str | None:
    """The output of git in this repository; None: it failed."""
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def test_subjects_of_new_commits_can_be_searched() -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("a source archive has no history")
    if git("merge-base", "--is-ancestor", SINCE, "HEAD") is None:
        pytest.skip("this clone is shallow, or has another history")
    subjects = (git("log", "--no-merges", "--format=%s", f"{SINCE}..HEAD") or "").splitlines()
    assert {
        subject: wrong for subject in subjects if (wrong := wrong_with(subject)) and subject not in WRITTEN_BEFORE
    } == {}
