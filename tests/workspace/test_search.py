"""Finding files and lines, with and without ripgrep."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, Forbidden
from portico.workspace import search as module
from portico.workspace.git import git
from portico.workspace.glob import Glob
from portico.workspace.ignore import Ignore
from portico.workspace.jail import Jail
from portico.workspace.search import SearchMatch, find, search

# Stands in for ripgrep where it is not installed: the few options we use, so that the way through it is tested.
RIPGREP = f"""#!{sys.executable}
import re, sys
given = sys.argv[1:]
paths = given[given.index("--") + 1:]
pattern = given[given.index("--regexp") + 1]
if "--fixed-strings" in given:
    pattern = re.escape(pattern)
elif "(?=" in pattern:
    sys.exit(2)  # look-around is not supported
flags = re.MULTILINE | (re.IGNORECASE if "--ignore-case" in given else 0)
hits = [p for p in paths if re.search(pattern.encode(), open(p, "rb").read().replace(b"\\r\\n", b"\\n"), flags)]
sys.stdout.write("".join(p + chr(0) for p in hits))
sys.exit(0 if hits else 1)
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    write(
        root,
        {
            ".gitignore": "*.log\n/build/\n!keep.log\nnode_modules\n",
            ".git/config": "needle",
            ".github/ci.yml": "on: push",
            "a.log": "needle",
            "keep.log": "needle",
            "build/out.txt": "needle",
            "src/build/kept.txt": "x",
            "src/main.py": "import os\n# Needle here\nprint('needle')\r\n",
            "src/.gitignore": "generated/\n",
            "src/generated/x.py": "needle",
            "web/node_modules/lib.js": "needle",
            "web/index.ts": "export {}",
            "-": "needle in a dash",
        },
    )
    (root / "data.bin").write_bytes(b"needle\0")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("needle")
    (root / "out").symlink_to(tmp_path / "outside")
    return root


@pytest.fixture(params=["python", "ripgrep"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    if request.param == "ripgrep" and shutil.which("rg") is None:
        (tools / "rg").write_text(RIPGREP)
        (tools / "rg").chmod(0o755)
    if request.param == "python":
        monkeypatch.setattr(shutil, "which", lambda _: None)
    return str(request.param)


ALL = [
    "-",
    ".github/ci.yml",
    ".gitignore",
    "data.bin",
    "keep.log",
    "src/.gitignore",
    "src/build/kept.txt",
    "src/main.py",
    "web/index.ts",
]


async def test_lists_what_is_not_ignored(root: Path) -> None:
    found = await find(Jail([root]))
    assert (found.paths, found.cut) == (ALL, False)


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("*.py", ["src/main.py"]),
        ("src/**", ["src/.gitignore", "src/build/kept.txt", "src/main.py"]),
        ("**/*.{ts,py}", ["src/main.py", "web/index.ts"]),
        ("*.py*", ["src/main.py"]),
        ("main", ["src/main.py"]),
        ("web/*", ["web/index.ts"]),
        ("[!a-z]*.yml", []),
        ("nothing", []),
    ],
)
async def test_globs_and_pieces_of_names(root: Path, glob: str, paths: list[str]) -> None:
    assert (await find(Jail([root]), glob)).paths == paths


async def test_listing_is_bounded_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = await find(Jail([root]), limit=2)
    assert (some.paths, some.cut) == (ALL[:2], True)
    assert not (await find(Jail([root]), limit=len(ALL))).cut
    monkeypatch.setattr(module, "WALK_MAX", 3)
    assert (await find(Jail([root]))).cut
    with pytest.raises(BadRequest):
        await find(Jail([root]), limit=0)


async def test_the_same_files_as_git_lists(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / "out").unlink()
    await git(root, "init", "-q")
    said = await git(root, "ls-files", "-co", "--exclude-standard", "-z")
    assert (await find(Jail([root]))).paths == sorted(filter(None, said.split("\0")))


async def test_finds_lines(root: Path, engine: str) -> None:
    found = await search(Jail([root]), "needle")
    assert found.matches == [
        SearchMatch("-", 1, "needle in a dash"),
        SearchMatch("keep.log", 1, "needle"),
        SearchMatch("src/main.py", 3, "print('needle')"),
    ]
    assert found.cut == ""


async def test_finds_by_expression_case_and_glob(root: Path, engine: str) -> None:
    jail = Jail([root])
    anchored = await search(jail, r"^print\(.*\)$", regex=True)
    assert anchored.matches == [SearchMatch("src/main.py", 3, "print('needle')")]
    both = await search(jail, "needle", ignore_case=True, glob="*.py")
    assert [match.line for match in both.matches] == [2, 3]
    ahead = await search(jail, r"nee(?=dle)", regex=True, glob="keep*")
    assert ahead.matches == [SearchMatch("keep.log", 1, "needle")]
    assert (await search(jail, "nee.le")).matches == []
    assert (await search(jail, "needle", under="src")).matches == [SearchMatch("src/main.py", 3, "print('needle')")]


async def test_search_is_bounded_and_says_so(root: Path, engine: str) -> None:
    found = await search(Jail([root]), "needle", limit=2)
    assert (len(found.matches), found.cut) == (2, "matches")
    assert (await search(Jail([root]), "needle", limit=3)).cut == ""


async def test_long_lines_are_cut_and_large_files_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"min.js": "needle" + "x" * 5000, "large": "needle\n" * 2000})
    monkeypatch.setattr(module, "FILE_MAX", 6000)
    found = await search(Jail([root]), "needle", glob="{min.js,large}")
    assert [(match.path, len(match.text)) for match in found.matches] == [("min.js", module.LINE_MAX)]


async def test_an_expression_that_never_ends_does_not_stop_the_host(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's expressions cannot be interrupted, and hold everything else up while they run."""
    write(root, {"evil": "a" * 60})
    monkeypatch.setattr(module, "SECONDS_MAX", 1.0)
    monkeypatch.setattr(shutil, "which", lambda _: None)  # ripgrep's own expressions always end
    found = await search(Jail([root]), r"^(a+)+b", regex=True, glob="evil")
    assert (found.matches, found.cut) == ([], "time")


@pytest.mark.parametrize(("pattern", "regex"), [("", False), ("(", True), ("x" * 2000, False), ("a\0", False)])
async def test_patterns_that_are_none(root: Path, pattern: str, regex: bool) -> None:
    with pytest.raises(BadRequest):
        await search(Jail([root]), pattern, regex=regex)


async def test_searching_stays_inside(root: Path) -> None:
    for under in ("..", "out", "/etc"):
        with pytest.raises(Forbidden):
            await find(Jail([root]), under=under)
    assert not any("out/" in path for path in (await find(Jail([root]))).paths)


async def test_a_folder_swapped_for_a_link_while_it_is_walked_is_not_entered(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.txt").write_text("x")
    (root / "soon").mkdir()
    enter = module._Walker.enter

    def swapped(walker: module._Walker, fd: int, parts: tuple[str, ...], ignore: Ignore) -> Iterator[tuple[str, ...]]:
        if parts == ("soon",):
            (root / "soon").rmdir()
            (root / "soon").symlink_to(tmp_path / "elsewhere")
        return enter(walker, fd, parts, ignore)

    monkeypatch.setattr(module._Walker, "enter", swapped)
    found = (await find(Jail([root]), limit=500)).paths
    assert found
    assert not any("secret" in path for path in found)


async def test_a_second_root_is_named_in_full(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "outside"
    found = await search(Jail([root, other]), "needle", under=str(other))
    assert found.matches == [SearchMatch(str(other / "secret"), 1, "needle")]


SAMPLES = st.text("ab/.*?[]!{,}\\", max_size=12)


@given(SAMPLES, st.text("ab/.", max_size=12))
def test_any_glob_is_answered(pattern: str, path: str) -> None:
    with suppress(BadRequest):
        Glob(pattern).matches(path)


@given(st.text("ab.*?/", max_size=8), st.text("ab./", min_size=1, max_size=8))
def test_globs_mean_what_they_say(pattern: str, path: str) -> None:
    """Against the plain translation to one regular expression, which is slow and obvious."""
    names = [name for name in pattern.split("/") if name]
    parts = path.split("/")
    if not names or "**" in pattern or "" in parts:
        return
    plain = "/".join("".join({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)) for sign in name) for name in names)
    expected = re.fullmatch(plain if "/" in pattern else f"(?:.*/)?{plain}", path) is not None
    assert Glob(pattern).matches(path) is expected


def test_a_glob_made_to_be_slow_is_not() -> None:
    assert not Glob("**/" * 30 + "*a" * 50 + "b").matches("/".join(["a" * 200] * 10))
