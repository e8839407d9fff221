"""`/v1/sessions/{id}/changes`: what the turns changed, as JSON and as a diff; and worktrees."""

from pathlib import Path

from portico.workspace.git import git
from tests.doors.standing import Standing, problem


async def test_files_and_their_diff(shared: Standing, tmp_path: Path) -> None:
    await git(tmp_path, "init", "-q")
    (tmp_path / "gone.txt").write_text("x\n")
    session = await shared.start(cwd=str(tmp_path), agent="demo", config={"approvals": "allow"})
    one = f"/v1/sessions/{session}/changes"
    state = await shared.say(session, "write a file")
    turn = state["turns"][0]["id"]
    found = (await shared.http.get(one, params={"turn": turn})).json()
    name = found["files"][0].pop("path")
    added = len((tmp_path / name).read_text().splitlines())
    assert found == {
        "git": True,
        "cut": False,
        "files": [{"status": "added", "added": added, "removed": 0, "binary": False}],
    }
    diff = await shared.http.get(f"{one}/diff", params={"path": name, "turn": turn})
    assert (diff.headers["content-type"], f"+++ b/{name}" in diff.text) == ("text/plain; charset=utf-8", True)
    problem(await shared.http.get(f"{one}/diff", params={"path": "gone.txt"}), 404, "not_found")
    problem(await shared.http.get(one, params={"turn": "t99"}), 404, "not_found")


async def test_without_git(shared: Standing, tmp_path: Path) -> None:
    session = await shared.start(cwd=str(tmp_path))
    one = f"/v1/sessions/{session}/changes"
    assert (await shared.http.get(one)).json() == {"git": False, "cut": False, "files": []}
    assert "git init" in problem(await shared.http.get(f"{one}/diff"), 404, "not_found")


async def test_a_worktree_on_request(shared: Standing, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    await git(folder, "init", "-q")
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    await git(folder, *identity, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-m", "first")
    body = {"agent": "scripted", "cwd": str(folder), "worktree": {"name": "fix", "base": "HEAD"}}
    started = (await shared.http.post("/v1/sessions", json=body)).json()
    assert started["cwd"] == str(tmp_path / "project.worktrees/fix")
    one = f"/v1/sessions/{started['id']}"
    assert (await shared.http.get(one)).json()["worktree"]["branch"] == "portico/fix"
    (tmp_path / "project.worktrees/fix/new.txt").write_text("x\n")
    gone = await shared.http.delete(one)
    assert (gone.status_code, "uncommitted" in gone.json()["kept"]) == (200, True)
    plain = (await shared.http.post("/v1/sessions", json={**body, "worktree": True})).json()
    assert (await shared.http.delete(f"/v1/sessions/{plain['id']}")).status_code == 204
    problem(
        await shared.http.post("/v1/sessions", json={**body, "worktree": {"branch": "x"}}),
        400,
        "bad_request",
        "worktree.branch",
    )
    problem(await shared.http.post("/v1/sessions", json=body), 409, "already_exists")
