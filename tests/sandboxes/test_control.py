"""The control of the attacks: without a sandbox they succeed, so that their failure inside of one proves something."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from portico.sandbox import attempts
from tests.sandboxes.attack import attacked
from tests.sandboxes.later import LINES, Planted
from tests.sandboxes.test_later import WHO

NEEDS = {
    "read the root of the machine": "needs the processes of root",
    "set the handler of core dumps": "needs root",
    "use magic keys": "needs root",
    "write to /etc": "needs root",
    "write to /usr": "needs root",
    "write through a link": "needs root",
    "hard link of a system file": "needs root, and one file system",
    "mount": "needs root",
    "send ICMP": "needs root",
    "type into a terminal": "Linux 6.2 and later refuse it (dev.tty.legacy_tiocsti)",
    "unmount a protected path": "nothing is mounted there",
    "become another user": "a container may have given this up",
    "new user namespace": "some systems refuse it",
    "virtual machine socket": "needs the module vsock",
    "network interface": "a machine may have only lo",
    "route": "a machine may have none",
}
"""Attempts that fail on some machines without a sandbox. All others have to succeed."""


def test_the_attempts_succeed_without_a_sandbox(tmp_path: Path) -> None:
    with attacked(tmp_path) as attack:
        done = subprocess.run(attack.line, shell=True, cwd=attack.work, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    assert found.keys() >= NEEDS.keys()
    assert {name: why for name, why in found.items() if why != attempts.ESCAPED and name not in NEEDS} == {}


def use(folder: Path) -> None:
    """Use git as a user does; an attack may have broken the repository."""
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    (folder / "filtered").write_text("new\n")
    for command in ("status", "add .", "commit -qm later", "checkout -q -- ."):
        subprocess.run(["git", *command.split()], cwd=folder, env=env, capture_output=True, check=False)


@pytest.mark.parametrize("name", LINES)
def test_what_is_planted_starts_without_a_sandbox(tmp_path: Path, name: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    planted = Planted(work, only=name)
    for each in planted.marks.iterdir():
        each.unlink()
    subprocess.run(["sh", "later.sh"], cwd=work, check=True, capture_output=True)
    assert (work / "later.done").exists()
    for folder in (work, tmp_path / "other-tree", work / "module", work / "new"):
        if folder.exists():
            use(folder)
    assert os.listdir(planted.marks) == ["ran"]


@pytest.mark.parametrize("has_git", [True, False])
def test_attempts_on_git_are_made_only_in_a_repository(tmp_path: Path, has_git: bool) -> None:
    """`portico sandbox check` listed them as refused in a folder that has none."""
    if has_git:
        (tmp_path / ".git").mkdir()
    facts = {"folder": str(tmp_path), "pid": 1, "secrets": [], "ports": [], "sockets": [], "abstract": []}
    made = attempts.attempts(facts).keys()
    assert ({"write a git hook", "set a program in git"} <= made, "mount" in made) == (has_git, True)
