"""A full disk ends no job: whatever was under way is taken up when the disk is back, as after a restart."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.call import Call
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Json, ToolSpec
from portico.kernel.host import Host
from portico.kernel.log import group_commit
from portico.kernel.tool import Tool, ToolResult
from tests.jobs.playing import Data, make, ok, opened, short, task, until_ended
from tests.jobs.samples import par, ref, seq

GATED = "[[tool:gate|x]] [[say:done]]"


class Disk:
    """Says no from `fill` to `free`. What calls the tool `gate` waits until then, once."""

    def __init__(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        self._host, self._patches = host, monkeypatch
        self.reached = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        spec = ToolSpec(name="gate", description="Waits", schema={"type": "object"})
        host.tools["gate"] = Tool(spec, self._wait)
        monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)

    async def _wait(self, arguments: Json, call: Call) -> ToolResult:
        self.reached.release()
        await self.open.wait()
        return ToolResult(True)

    @contextlib.asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """Until the block ends; it begins when the log knows."""

        def refuse(*_: object) -> None:
            raise LogUnavailable("The disk is full.")

        with self._patches.context() as patched:
            patched.setattr(self._host.log._database, "write", refuse)  # type: ignore[attr-defined]
            patched.setattr(self._host.log._database, "probe", refuse)  # type: ignore[attr-defined]
            with pytest.raises(LogUnavailable):
                await self._host.log.append("host", e.HostStopped(reason="a word that cannot be written"))
            yield
        await self._host.log.available()


@pytest.fixture
def disk(host: Host, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(host, monkeypatch)


async def test_every_lane_of_a_job_outlasts_a_full_disk(host: Host, tmp_path: Path, disk: Disk) -> None:
    """One lane met the full disk in its check, and the turn of the other one, which then was cancelled with it, got
    the end `stopped` when the disk was back: the job failed."""
    os.mkfifo(tmp_path / "checking")
    os.mkfifo(tmp_path / "gate")
    command = f"cd {tmp_path}; [ -e again ] || {{ touch again; echo > checking; cat gate; }}"
    checked = ok(criteria={"command": command, "failureAction": {"retryTimes": 0}})
    jobs = await opened(host, make({"turn": task(GATED), "check": checked}, par(ref("check"), ref("turn"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await disk.reached.acquire()
    await asyncio.to_thread((tmp_path / "checking").read_text)
    async with disk.full():
        main = jobs._mains[job]
        await asyncio.to_thread((tmp_path / "gate").write_text, "")
        disk.open.set()
        await asyncio.wait({main})
    await ended_well(host, job)


RETRY = {"failureAction": {"retryTimes": 0}}
WORKS: dict[str, Data] = {
    "a turn": task(GATED),
    "a condition, which has no retries": task(
        "[[say:x]]", criteria={"condition": ["[[tool:gate|x]] [[tool:job_boolean_true|x]]"], **RETRY}
    ),
    "a judge, who has one voice": task(
        "[[say:x]]",
        criteria={"checks": [{"model": {"condition": ["[[tool:gate|x]] [[tool:job_boolean_true|x]]"]}}], **RETRY},
    ),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("ends", ["meanwhile", "afterwards"])
async def test_a_turn_that_a_full_disk_ends_is_nobodys_failure(
    host: Host, tmp_path: Path, disk: Disk, work: str, ends: str
) -> None:
    jobs = await opened(host, msgspec.structs.replace(make({"work": WORKS[work]}), driving_session_retries=[]))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await disk.reached.acquire()
    async with disk.full():
        if ends == "meanwhile":
            disk.open.set()
            await asyncio.sleep(0)
    disk.open.set()
    await ended_well(host, job)


async def test_a_question_is_asked_again(host: Host, tmp_path: Path, disk: Disk) -> None:
    """A full disk ends the turn in which it stands, and that counted as a refusal."""
    work = {"kind": "Ask", "question": ["Ship it?"]}
    jobs = await opened(host, make({"ok": ok()}, seq(work, ref("ok"))))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await asked(host, 1)
    async with disk.full():
        pass
    question = await asked(host, 2)
    session = await host.get(question.partition(".")[0])
    await session.questions.answer(question, "accept", {"answer": "yes"}, by="test")
    await ended_well(host, job)


async def test_a_borrowed_session_is_given_back(host: Host, tmp_path: Path, disk: Disk) -> None:
    """The task stayed open until the next start of the host."""
    jobs = await opened(host, make({"turn": task(GATED)}))
    session = await host.start(by="test", cwd=str(tmp_path))
    ident = await jobs.start_task("turn", session=session.id, by="test")
    await disk.reached.acquire()
    async with disk.full():
        pass
    assert isinstance(last := (await until_ended(host.log, f"task/{ident}"))[-1], je.TaskEnded)
    assert (last.outcome, session.state.closed) == ("interrupted", False)


async def test_a_job_can_be_stopped_after_a_full_disk_refused_it(host: Host, tmp_path: Path, disk: Disk) -> None:
    """The refused stop counted: the job never got an end, and every further stop waited for it."""
    jobs = await opened(host, make({"turn": task(GATED)}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await disk.reached.acquire()
    async with disk.full():
        with pytest.raises(LogUnavailable):
            await jobs.stop_job(job, by="test")
    await jobs.stop_job(job, by="test")
    words = short(await until_ended(host.log, f"job/{job}"))
    assert (words[-1], paired(words)) == ("jobCanceled", True)


@pytest.mark.parametrize("commit", range(1, 31))
async def test_the_disk_is_full_at_any_commit(
    host: Host, tmp_path: Path, disk: Disk, commit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    criteria = {"condition": ["[[tool:job_boolean_true|x]]"], "command": "true", **RETRY}
    tasks = {"checked": task("[[say:x]] [[tool:job_boolean_true|x]]", criteria=criteria), "ok": ok()}
    jobs = await opened(host, make(tasks, seq(par(ref("checked"), ref("ok")), ref("ok"))))
    database, number = host.log._database, 0  # type: ignore[attr-defined]
    write = database.write

    def write_or_refuse(batch: object) -> None:
        nonlocal number
        number += 1
        if number == commit:
            raise LogUnavailable("The disk is full.")
        write(batch)

    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    monkeypatch.setattr(database, "write", write_or_refuse)
    await ended_well(host, job)


async def ended_well(host: Host, job: str) -> None:
    words = short(await until_ended(host.log, f"job/{job}"))
    assert (words[-1], paired(words)) == ("jobSucceeded", True), words


def paired(words: list[str]) -> bool:
    """Every work that began has an end."""
    return sum(word[0] == "+" for word in words) == sum(word[0] == "-" for word in words)


async def asked(host: Host, times: int) -> str:
    """The question, when it was asked so often."""
    found: list[str] = []
    async for records in host.log.follow():
        found += [record.event.question for record in records if isinstance(record.event, e.QuestionAsked)]
        if len(found) >= times:
            break
    return found[-1]
