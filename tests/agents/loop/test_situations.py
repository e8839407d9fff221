"""What commands and files do in ordinary work, and what the model reads of it. `bench/difficult` has more of these."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portico.agents.loop.roots import Roots
from portico.workspace.replacement import fold
from tests.agents.loop.conftest import Desk, acts, calls, ends

FREE = '[agents.loop]\nprotocol = "text"\n[agent]\nrequire_approval = "none"\n'
COMMANDS: dict[str, tuple[str, list[str], list[str]]] = {
    "a process that stays": ("sleep 300 & echo started", ["started", "left running were ended"], []),
    "a daemon": ("setsid sleep 300 > /dev/null 2>&1 & echo started", ["started", "left running were ended"], []),
    "nothing that stays": ("sleep 0 & wait; echo done", ["done", "[exit code 0]"], ["left running"]),
    "input": ("read x; echo got:$x", ["got:\n[exit code 0]"], []),
    "a progress bar": ("printf '1%%\\r50%%\\r100%%\\nend\\n'", ["100%\nend\n[exit code 0]"], ["50%"]),
    "lines with CRLF": ("printf 'a\\r\\nb\\r\\n'", ["a", "b"], []),
}


@pytest.mark.parametrize(("line", "words", "missing"), COMMANDS.values(), ids=COMMANDS)
async def test_what_the_model_reads_of_a_command(desk: Desk, line: str, words: list[str], missing: list[str]) -> None:
    desk.settings(FREE)
    desk.says(acts({"tool": "runCommand", "command": line}), ends())
    (call,) = calls(await desk.run())
    assert [each for each in words if each not in call.output] == [], call.output
    assert [each for each in missing if each in call.output] == []


async def test_a_command_that_does_not_end_is_explained(desk: Desk) -> None:
    desk.settings(FREE)
    desk.says(acts({"tool": "runCommand", "command": "tail -f /dev/null", "timeout": 0.2}), ends())
    (call,) = calls(await desk.run())
    assert "timed out after 0.2 s and was ended; commands have no terminal and no input" in call.output
    assert "startCommand" in call.output


NAMES: dict[str, tuple[str, str]] = {
    "decomposed": ("cafe\u0301.txt", "café.txt"),
    "composed": ("café.txt", "cafe\u0301.txt"),
    "a narrow no-break space": ("Screenshot 9.41\u202fAM.png", "Screenshot 9.41 AM.png"),
    "a no-break space": ("a\u00a0b.txt", "a b.txt"),
    "a curly quote": ("it’s.txt", "it's.txt"),
    "a dash": ("1 \u2013 2.txt", "1 - 2.txt"),
    "in a folder": ("cafe\u0301/a\u00a0b.txt", "café/a b.txt"),
}


@pytest.mark.parametrize(("name", "written"), NAMES.values(), ids=NAMES)
async def test_a_file_is_found_by_a_name_that_looks_the_same(desk: Desk, name: str, written: str) -> None:
    desk.settings(FREE)
    path = desk.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("found\n")
    desk.says(
        acts({"tool": "readFiles", "files": [written]}),
        acts({"tool": "editFile", "path": written, "search": "found", "replace": "changed"}),
        acts({"tool": "createFile", "path": written, "content": "x"}),
        ends(),
    )
    read, edited, created = calls(await desk.run())
    assert (read.ok, edited.ok, created.ok) == (True, True, False), (read.output, edited.output)
    assert (path.read_text(), "exists already" in created.output) == ("changed\n", True)
    assert name in edited.input or name in edited.title


def _two(project: Path) -> None:
    (project / "a\u00a0b.txt").write_text("1")
    (project / "a\u202fb.txt").write_text("2")


def _outside(project: Path) -> None:
    (project.parent / "a\u00a0b.txt").write_text("1")


def _exact(project: Path) -> None:
    (project / "a b.txt").write_text("1")
    (project / "a\u00a0b.txt").write_text("2")


AS_IT_IS: dict[str, tuple[Callable[[Path], None], str]] = {
    "two are similar": (_two, "a b.txt"),
    "outside": (_outside, "../a b.txt"),
    "it exists": (_exact, "a b.txt"),
    "no such folder": (_exact, "sub dir/a b.txt"),
    "a plain name": (_two, "ab.txt"),
    "an absolute path": (_exact, "/a b.txt"),
}


@pytest.mark.parametrize(("prepare", "path"), AS_IT_IS.values(), ids=AS_IT_IS)
def test_a_name_without_one_similar_file_stays(tmp_path: Path, prepare: Callable[[Path], None], path: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    prepare(project)
    assert Roots(str(project), ["*"]).similar(path) == path


async def test_a_similar_name_that_links_out_is_refused(desk: Desk, tmp_path: Path) -> None:
    """The name is completed before the jail looks at it, so that a link out is refused as by its own name."""
    desk.settings(FREE)
    (tmp_path / "secret.txt").write_text("canary")
    os.symlink(tmp_path / "secret.txt", desk.project / "a\u00a0b.txt")
    desk.says(acts({"tool": "readFiles", "files": ["a b.txt"]}), ends())
    (call,) = calls(await desk.run())
    assert (call.ok, "canary" in call.output) == (False, False)


def test_texts_that_look_the_same_fold_to_the_same() -> None:
    assert fold("“a”\u00a0e\u0301…") == '"a" é...'


HINTS = {
    "a picture": ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "viewImage shows pictures"),
    "other bytes": ("a.bin", bytes(range(256)), "binary file of 256 bytes]"),
    "one long line": ("a.js", b"x=1;" * 50_000, "this line is longer; search in it, or use a command"),
    "many lines": ("a.txt", b"line\n" * 50_000, "ask for a range"),
}


@pytest.mark.parametrize(("name", "data", "words"), HINTS.values(), ids=HINTS)
async def test_a_file_that_is_not_shown_whole_is_explained(desk: Desk, name: str, data: bytes, words: str) -> None:
    desk.settings(FREE)
    (desk.project / name).write_bytes(data)
    desk.says(acts({"tool": "readFiles", "files": [name]}), ends())
    (call,) = calls(await desk.run())
    assert (call.ok, words in call.output[-200:]) == (True, True), call.output[-200:]
