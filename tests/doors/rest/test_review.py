"""Commit and discard what a session changed: only what was seen, only in its folder; a discard can be taken back."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.doors.standing import Standing, problem


def run_git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "--quiet")
    run_git(tmp_path, "config", "user.name", "T")
    run_git(tmp_path, "config", "user.email", "t@example.org")
    (tmp_path / "kept.txt").write_text("one\n")
    (tmp_path / "gone.txt").write_text("to be deleted\n")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "--quiet", "-m", "first")
    (tmp_path / "kept.txt").write_text("two\n")
    (tmp_path / "new *.txt").write_text("new\n")
    (tmp_path / "gone.txt").unlink()
    return tmp_path


class Reviewed:
    def __init__(self, shared: Standing, session: str) -> None:
        self.shared = shared
        self.address = f"/v1/sessions/{session}"

    async def look(self) -> dict[str, Any]:
        return (await self.shared.http.get(f"{self.address}/uncommitted")).json()  # type: ignore[no-any-return]

    async def post(self, verb: str, **body: Any) -> Any:
        return await self.shared.http.post(f"{self.address}/{verb}", json=body)


async def reviewed(shared: Standing, folder: Path) -> Reviewed:
    return Reviewed(shared, await shared.start(cwd=str(folder)))


async def test_some_files_are_committed_and_the_others_stay(shared: Standing, repository: Path) -> None:
    here = await reviewed(shared, repository)
    seen = await here.look()
    assert {(each["path"], each["status"]) for each in seen["files"]} == {
        ("kept.txt", "modified"),
        ("new *.txt", "added"),
        ("gone.txt", "deleted"),
    }
    diff = (await shared.http.get(f"{here.address}/uncommitted/diff")).text
    assert "+two" in diff
    done = await here.post("commit", message="Two", state=seen["state"], paths=["kept.txt", "gone.txt"])
    assert done.status_code == 201, done.text
    assert run_git(repository, "log", "-1", "--format=%s %H").split() == ["Two", done.json()["commit"]]
    assert [each["path"] for each in (await here.look())["files"]] == ["new *.txt"]


async def test_a_discard_is_taken_back(shared: Standing, repository: Path) -> None:
    here = await reviewed(shared, repository)
    seen = await here.look()
    done = await here.post("discard", state=seen["state"])
    assert done.status_code == 200, done.text
    assert (repository / "kept.txt").read_text() == "one\n"
    assert (repository / "gone.txt").exists()
    assert not (repository / "new *.txt").exists()
    paths = [each["path"] for each in seen["files"]]
    back = await here.post("discard/undo", undo=done.json()["undo"], paths=paths)
    assert back.status_code == 204, back.text
    assert (await here.look())["files"] == seen["files"]
    problem(await here.post("discard/undo", undo="0" * 40, paths=paths), 404, "not_found")


async def test_what_was_written_after_a_discard_is_not_overwritten(shared: Standing, repository: Path) -> None:
    here = await reviewed(shared, repository)
    done = (await here.post("discard", state=(await here.look())["state"], paths=["kept.txt"])).json()
    (repository / "kept.txt").write_text("three\n")
    problem(await here.post("discard/undo", undo=done["undo"], paths=["kept.txt"]), 409, "conflict")
    assert (repository / "kept.txt").read_text() == "three\n"


@pytest.mark.parametrize("verb", ["commit", "discard"])
async def test_nothing_is_done_when_the_files_have_moved_on(shared: Standing, repository: Path, verb: str) -> None:
    here = await reviewed(shared, repository)
    state = (await here.look())["state"]
    (repository / "kept.txt").write_text("three\n")
    body = {"state": state, **({"message": "x"} if verb == "commit" else {})}
    assert "changed since you looked" in problem(await here.post(verb, **body), 409, "conflict")
    assert (repository / "kept.txt").read_text() == "three\n"


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "*", ".git/config", "absent"])
async def test_only_changed_files_can_be_named(shared: Standing, repository: Path, path: str) -> None:
    here = await reviewed(shared, repository)
    state = (await here.look())["state"]
    problem(await here.post("discard", state=state, paths=[path]), 404, "not_found")
    problem(await here.post("commit", state=state, message="x", paths=[path]), 404, "not_found")


async def test_without_git_there_is_nothing_to_commit(shared: Standing, tmp_path: Path) -> None:
    here = await reviewed(shared, tmp_path)
    assert await here.look() == {"git": False, "state": "", "files": [], "cut": False}
    problem(await here.post("commit", message="x", state=""), 404, "not_found")
    problem(await here.post("commit", message=" ", state=""), 400, "bad_request", "message")


async def test_a_file_without_lines_is_shown_side_by_side(shared: Standing, repository: Path) -> None:
    (repository / "kept.txt").write_bytes(b"\x89PNG\0new")
    here = await reviewed(shared, repository)

    async def side(path: str, **query: str) -> Any:
        return await shared.http.get(f"{here.address}/uncommitted/file", params={"path": path, **query})

    before, after = await side("kept.txt", side="before"), await side("kept.txt")
    assert (before.content, after.content) == (b"one\n", b"\x89PNG\0new")
    assert after.headers["content-type"] == "application/octet-stream"
    assert after.headers["content-disposition"] == "attachment"
    problem(await side("gone.txt"), 404, "not_found")
    problem(await side("../kept.txt"), 404, "not_found")
    problem(await side("kept.txt", side="left"), 400, "bad_request", "side")
    problem(await shared.http.get(f"{here.address}/changes/file", params={"path": "kept.txt"}), 404, "not_found")
