"""`portico sandbox`: any command under a policy, and the table of escapes; as root and as an ordinary user."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from functools import partial
from pathlib import Path

import pytest

from tests.process import PORTICO
from tests.test_imports import ROOT


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PORTICO_HOME", str(tmp_path / "home"))
    return folder


def test_a_command_runs_in_a_sandbox(project: Path) -> None:
    line = "echo $PORTICO_SANDBOX; echo made > file; cat /proc/1/environ | grep -c PORTICO_HOME; exit 3"
    done = subprocess.run(
        [PORTICO, "sandbox", "run", "-m", "strict", "--", "sh", "-c", line], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "strict\n0\n"), done.stderr
    assert (project / "file").read_text() == "made\n"


@pytest.mark.parametrize("mode", ["project", "strict"])
def test_nothing_leaves_the_sandbox(project: Path, mode: str) -> None:
    command = [PORTICO, "sandbox", "check", "--mode", mode, "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(found) > 20
    assert [each["attempt"] for each in found if each["escaped"]] == []


def test_what_is_wrong_is_named(project: Path) -> None:
    done = subprocess.run([PORTICO, "sandbox", "check", "--mode", "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, "--mode is 'project' or 'strict', not 'x'" in done.stderr) == (64, True)
    done = subprocess.run([PORTICO, "sandbox", "run", "--", "nosuch"], capture_output=True, text=True, check=False)
    assert (done.returncode, "There is no program 'nosuch'" in done.stderr) == (64, True)
    for verb in (["check", "--cwd", "/nowhere"], ["run", "--cwd", "/nowhere", "--", "true"]):
        done = subprocess.run([PORTICO, "sandbox", *verb], capture_output=True, text=True, check=False)
        assert (done.returncode, "'/nowhere' is not a folder" in done.stderr) == (64, True)


SYSTEM_PYTHON = "/usr/bin/python3"
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("setpriv") is None, reason="only root becomes another user")
def test_an_ordinary_user_has_the_same_sandbox() -> None:
    """With the system's Python, because others cannot read one in the home folder of root."""
    with tempfile.TemporaryDirectory(prefix="portico-user-", dir="/tmp") as name:
        for folder in (Path(name), Path(name, "project"), Path(name, "user/.ssh")):
            folder.mkdir(parents=True, exist_ok=True)
        Path(name, "user/.ssh/id_ed25519").write_text("secret")
        subprocess.run(["git", "init", "-q", f"{name}/project"], check=True)
        subprocess.run(["chown", "-R", "65534:65534", name], check=True)
        env = {"PATH": "/usr/bin:/bin", "HOME": f"{name}/user", "PORTICO_HOME": f"{name}/portico"}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT.parent), sysconfig.get_path("purelib")])
        run = partial(subprocess.run, cwd=f"{name}/project", env=env, capture_output=True, text=True, check=False)
        if run([*USER, SYSTEM_PYTHON, "-c", "import portico.cli.sandbox"]).returncode != 0:
            pytest.skip("another user cannot import this Portico")
        done = run([*USER, SYSTEM_PYTHON, "-m", "portico", "sandbox", "check", "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert f"read {name}/user/.ssh" in [each["attempt"] for each in found]
    assert [each["attempt"] for each in found if each["escaped"]] == []
