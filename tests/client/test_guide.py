"""The script of the guide is run as it is written there."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

from tests.doors.standing import standing
from tests.process import environment

GUIDE = Path(__file__).parents[2] / "docs/guide/python.md"
RULES = """
rules:
  - match: write
    steps:
      - {do: say, text: "I write it."}
      - {do: write, path: a.txt, text: "hello\\n"}
"""


def script() -> str:
    [found] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return str(found)


def test_it_is_short() -> None:
    assert len(script().strip().splitlines()) <= 32


def prepared(folder: Path) -> Path:
    """A project under git, the script and the rules of the agent."""
    project = folder / "project"
    project.mkdir()
    (folder / "rules.yaml").write_text(RULES)
    (folder / "drive.py").write_text(script())
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


async def test_the_script_starts_streams_approves_and_reads_the_changes(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    async with standing(tmp_path, agents=("scripted",), script=tmp_path / "rules.yaml") as here:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "drive.py", str(project), "write it"),
            cwd=tmp_path,
            env=environment(PORTICO_HOME=str(here.home.path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors) == (0, "")
    assert (project / "a.txt").read_text() == "hello\n"
    lines = printed.splitlines()
    assert lines[:2] == ["I write it.", "[write]"]
    assert "allow:" in printed
    assert "completed" in lines
    assert "added a.txt +1 -0" in lines
    assert "+hello" in lines
