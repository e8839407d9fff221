"""A host that is killed in a turn: what the turn had changed by then is known, without what came later."""

import json
import subprocess
from pathlib import Path

from tests.process import HostProcess, inside, running

SCRIPT = """
rules:
  - match: write
    steps:
      - {do: write, path: one.txt, text: "one\\n", ask: false}
      - {do: say, text: "written\\n"}
      - {do: hang}
"""


def changes(home: Path, *args: str) -> dict[str, object]:
    done = inside(home, "sessions", "changes", "session-1", "--json", *args)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_interrupted_turn_has_its_end_captured_at_recovery(tmp_path: Path) -> None:
    project, home, script = tmp_path / "project", tmp_path / "home", tmp_path / "script.yaml"
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    script.write_text(SCRIPT)
    with HostProcess(home, "--script", str(script)) as host:
        inside(home, "send", "write", "--agent", "scripted", "--cwd", str(project), "--detach")
        with running(home, "sessions", "tail", "session-1") as tail:
            assert tail.stdout is not None
            assert any("written" in line for line in tail.stdout)
            tail.kill()
        host.kill()
    with HostProcess(home, "--script", str(script)):
        wanted = {"path": "one.txt", "status": "added", "added": 1, "removed": 0, "binary": False}
        assert changes(home) == {"git": True, "files": [wanted], "cut": False}
        (project / "later.txt").write_text("after the crash, by a person\n")
        assert changes(home, "--turn", "t1")["files"] == [wanted]
        assert "+one" in str(changes(home, "--diff")["diff"])
