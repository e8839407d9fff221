"""`portico agents bench`: real tasks with the models of the settings."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from portico.testing.model import ModelServer
from portico.testing.tasks import TASKS
from portico.testing.tasks.scripted import script


def bench(home: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "portico", "agents", "bench", *args, "--home", str(home)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)


@pytest.mark.parametrize("as_json", [False, True])
async def test_tasks_are_done_with_the_endpoint_of_the_settings(tmp_path: Path, as_json: bool) -> None:
    async with ModelServer(script(TASKS.values())) as server:
        (tmp_path / "settings.toml").write_text(f'[agents.loop]\nbase_url = "{server.url}/v1"\ndiscover = false\n')
        done = await asyncio.to_thread(bench, tmp_path, "loop", "--only", "fix-l", *(["--json"] if as_json else []))
    assert done.returncode == 0, done.stderr
    if as_json:
        results = json.loads(done.stdout)["results"]
        assert [(each["agent"], each["task"], each["problem"]) for each in results] == [("loop", "fix-leap", "")]
    else:
        assert "| loop " in done.stdout
        assert "1/1" in done.stdout


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--only", "nonsense"], "There is no task 'nonsense'. There are: fix-median"),
        (["acp:nobody"], "There is no agent 'acp:nobody'. There are: "),
    ],
)
def test_what_does_not_exist_is_refused_with_what_there_is(tmp_path: Path, args: list[str], reason: str) -> None:
    done = bench(tmp_path, *args)
    assert done.returncode != 0
    assert reason in " ".join(done.stderr.split())
