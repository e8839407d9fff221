"""`portico cluster up`: real servers, real hosts, a job whose works are spread over them, and one host that dies."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from portico.client import Client
from portico.cluster.postgres.connect import connect
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.events import decode
from tests.jobs.playing import make, task
from tests.jobs.samples import par, ref, seq
from tests.process import PORTICO, environment, watchdog

_SCRIPT = "rules: []\nproviders: [{id: scripted, name: Scripted}]\n"


async def test_a_job_goes_on_at_another_host_of_a_cluster_for_trying(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(_SCRIPT, "utf-8")
    command = [PORTICO, "cluster", "up", "--hosts", "2", "--port", "0", "--json"]
    with (
        (tmp_path / "lines").open("wb") as lines,
        subprocess.Popen(  # noqa: ASYNC220 - a test has the time
            [*command, "--script", str(tmp_path / "script.yaml")],
            env=environment(PORTICO_CLUSTER_LEASE_SECONDS="3"),
            stdout=subprocess.PIPE,
            stderr=lines,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        with watchdog(process, 300):
            line = await asyncio.to_thread(process.stdout.readline)
            assert line, (tmp_path / "lines").read_text("utf-8")
            up = json.loads(line)
            try:
                told = await _use(up, tmp_path)
                await _join(tmp_path)
            finally:
                process.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(process.wait) == 0
    assert told == {"job.ended succeeded": 1, "work.ended succeeded": 5}
    for address in (urlsplit(up["log"]).netloc.partition("@")[2], up["temporal"]):
        assert not _listens(address)


async def _join(folder: Path) -> None:
    """The command line that is printed starts one more host: the log rejects one with another engine."""
    lines = (folder / "lines").read_text("utf-8").splitlines()
    words = shlex.split(next(line for line in lines if line.startswith("One more:")).removeprefix("One more:"))
    settings = dict(word.split("=", 1) for word in words if word.startswith("PORTICO_"))
    assert (settings["PORTICO_CLUSTER_HOST"], settings["PORTICO_CLUSTER_PLACE"]) == ("host-3", "demo")
    flags = [word.replace("FOLDER", str(folder / "more")) for word in words[words.index("serve") :]]
    process = await asyncio.create_subprocess_exec(
        *(PORTICO, *flags, "--print-ready"), env=environment(**settings), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 60)).startswith(b"READY:")
    process.terminate()
    await process.wait()


def _listens(address: str) -> bool:
    name, _, port = address.partition(":")
    try:
        socket.create_connection((name, int(port))).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("stage", ["its files are made", "it serves"])
def test_a_terminal_that_is_closed_leaves_nothing_running(stage: str) -> None:
    """SIGHUP, or Ctrl-C before the hosts were up, left PostgreSQL behind, or what makes its files."""
    with tempfile.TemporaryDirectory(prefix="portico-up-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # PostgreSQL runs as another user where we are root
        command = [PORTICO, "cluster", "up", "--hosts", "1", "--port", "0", "--folder", made]
        with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE) as process, watchdog(process, 300):
            server, lines = folder / "postgres" / "data" / "postmaster.pid", list[str]()
            while len(lines) < (1 if stage == "its files are made" else 8):  # the eighth says that it listens
                assert process.poll() is None
                time.sleep(0.005)
                lines = server.read_text("utf-8").splitlines() if server.exists() else []
            process.send_signal(signal.SIGHUP)
            assert process.wait() == 0
        assert _working_in(folder) == []
        assert not (folder / "host-1" / "endpoint.json").exists()


def _working_in(folder: Path) -> list[str]:
    """The processes that have it, or a folder in it, as their own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text("utf-8"))
    return found


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [PORTICO, "cluster", "up", "--port", port, "--folder", str(tmp_path / "up")]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "--port" in done.stderr, "Traceback" in done.stderr) == (64, True, False), done.stderr
    assert not (tmp_path / "up").exists()


async def _use(up: dict[str, Any], folder: Path) -> Counter[str]:
    """The outcomes of a job whose first works run while one of the hosts is killed."""
    first, other = up["hosts"]
    token = (Path(other["home"]) / "token").read_text("ascii").strip()
    slow = task("[[delay:4000]] [[say:slow]]")
    entry = make({"slow": slow}, seq(par(*[ref("slow")] * 4), ref("slow")))
    async with Client(up["url"], token, reconnect_timeout=120) as client:
        job = (await client.run_job("main", str(folder), entry=msgspec.to_builtins(entry))).job
        log = await connect(up["log"], "test")
        sql = "SELECT data FROM events e JOIN channels c ON c.id = e.channel WHERE c.name = $1 ORDER BY e.pos"

        async def until(*kinds: type[e.Event], count: int = 1) -> list[e.Event]:
            while True:
                found = [decode(data) for (data,) in await log.fetch(sql, f"job/{job}")]
                if sum(isinstance(each, kinds) for each in found) >= count:
                    return found
                assert not any(isinstance(each, je.JobEnded) for each in found), found
                await asyncio.sleep(0.1)

        await until(je.WorkStarted, count=4)
        os.kill(first["pid"], signal.SIGKILL)
        events = await until(je.JobEnded)
        await log.close()
    ends = [each for each in events if isinstance(each, je.JobEnded | je.WorkEnded)]
    names = {je.JobEnded: "job.ended", je.WorkEnded: "work.ended"}
    return Counter(f"{names[type(each)]} {each.outcome}" for each in ends if each.outcome != "interrupted")
