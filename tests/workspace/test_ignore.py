"""`.gitignore` files mean here what they mean to git."""

import subprocess
from pathlib import Path

import pytest

from portico.workspace.ignore import Ignore

TEXTS = [
    "a",
    "/a",
    "a/",
    "a/b",
    "*.log",
    "a*b",
    "a?",
    "[ab]",
    "[a-c]x",
    "[]a]",
    "[\\]a]",
    "*",
    "/*",
    "**",
    "/**",
    "**/b",
    "**/a/",
    "**/a/**",
    "a/**",
    "a/**/b",
    "a/*/b",
    "x/**/y/**",
    "foo/*",
    "*/b",
    "***",
    "a**b",
    "./a",
    "{a,b}",
    "# a",
    "\\#a",
    "\\!a",
    "\\^a",
    "\\*",
    "\\[a]",
    "\\[^a]",
    "\\[!a]",
    "[^a]",
    "[\\^a]",
    "[!\\^a]",
    "\\a",
    "\\\\a",
    "a ",
    "a\\ ",
    " a",
    "\ta",
    "a\r",
    "\n\na\n",
    "A",
    "*.log\n!x.log",
    "a\n!a",
    "!a\na",
    "a/\n!a",
    "a/b\n!a/",
    "*\n!*/\n!keep",
    "/*\n!/foo\n/foo/*\n!/foo/keep",
    "foo/*\n!foo/keep",
    "foo/**\n!foo/keep",
    "foo/\n!foo/keep",
    "foo\n!foo/keep",
    "**/a/**\n!keep",
    "!",
    "/",
    "!/",
]
NAMES = [
    "a",
    "b",
    "ab",
    "ax",
    "aXb",
    "A",
    "foo",
    "keep",
    "x.log",
    "!a",
    "#a",
    "^a",
    "*",
    "[a]",
    "[^a]",
    "[!a]",
    "a ",
    "{a,b}",
    "]",
    "# a",
]
DEEPER = [
    "a/b",
    "a/a",
    "a/x/b",
    "a/x/y/b",
    "a/keep",
    "b/a",
    "b/a/x",
    "foo/keep",
    "foo/x",
    "foo/x/keep",
    "x/y/a",
    "x/a/y/b",
]
PATHS = [*NAMES, *DEEPER, *(f"dir/{name}" for name in NAMES)]


def hidden(text: str, path: str) -> bool:
    """As a walk sees it: what lies in a folder that is hidden is never met."""
    rules, parts = Ignore().below((), text), tuple(path.split("/"))
    return any(rules.hides(parts[:count], count < len(parts)) for count in range(1, len(parts) + 1))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def by_git(repository: Path, text: str) -> dict[str, bool]:
    (repository / ".gitignore").write_bytes(text.encode())
    asked = ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"]
    told = subprocess.run(asked, input="\0".join(PATHS).encode(), capture_output=True, check=False).stdout.decode()
    fields = iter(told.split("\0"))
    rows = zip(fields, fields, fields, fields, strict=False)
    return {path: bool(source) and not pattern.startswith("!") for source, _, pattern, path in rows}


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_git_hides_the_same(repository: Path, text: str) -> None:
    """A `!` or `^` behind a backslash hid nothing, and `foo/**` hid the folder itself, with what a later line keeps."""
    assert {path: hidden(text, path) for path in PATHS} == by_git(repository, text)


@pytest.mark.parametrize(
    ("path", "is_folder", "expected"),
    [
        (("out",), True, True),
        (("out",), False, False),
        (("src", "out"), True, True),
        (("src", "gen"), False, True),
        (("gen",), False, False),
        (("src", "deep", "gen"), False, False),
        (("src", "x.log"), False, False),
        (("x.log",), False, True),
        (("deep", "x.log"), False, True),
    ],
)
def test_a_folders_own_rules_come_after_those_above_it(path: tuple[str, ...], is_folder: bool, expected: bool) -> None:
    rules = Ignore().below((), "*.log\nout/\n").below(("src",), "/gen\n!*.log\n")
    # The walk asks the rules of a folder only for what lies in it.
    asked = rules if path[0] == "src" else Ignore().below((), "*.log\nout/\n")
    assert asked.hides(path, is_folder) is expected


def test_a_range_that_is_empty_hides_nothing() -> None:
    rules = Ignore().below((), "[z-a]\nx\n")
    assert (rules.hides(("x",), False), rules.hides(("z",), False)) == (True, False)
