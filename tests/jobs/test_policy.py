"""What a job may do while nobody is there to ask: everything in its folders. What reaches beyond them waits."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from portico.agents.agent import AgentInfo, Message, Model, Turn
from portico.features.approvals.policy import ApprovalRules, Rules
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.commands import AnswerApproval, Caller
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace import jail
from tests.features import feature
from tests.jobs.playing import make, opened, play, story, task


class Maker(PlayAgent):
    """Runs these lines, if it may."""

    def __init__(self, *lines: str) -> None:
        super().__init__(self._make)
        self._lines = lines or ("make all", "rm it")

    async def describe(self) -> AgentInfo:
        return AgentInfo(self.id, "Maker", models=[Model("gpt-5.2", "A"), Model("gpt-5-mini", "B")])

    async def _make(self, message: Message, turn: Turn) -> None:
        for line in self._lines:
            call = turn.tool("shell", "{}")
            decision = await call.approve("shell", command=line)
            await call.end(ok=decision.allowed)


async def outcome(host: Host, folder: Path) -> str:
    await play(await opened(host, make({"it": task("Go.")})), folder, "")
    return (await story(host.log, "task-1"))[-1]


async def test_in_a_job_its_own_policy_decides_and_is_written_down(open_host: HostOpener, tmp_path: Path) -> None:
    """Nobody is asked, since nobody is there. What the settings refuse stays refused."""
    host = await open_host(Maker())
    host.approval_timeout = 0.01
    feature(host, ApprovalRules).policy.settings = Rules("setting", refused=("rm",))
    assert await outcome(host, tmp_path) == "taskSucceeded"
    found = await told(host)
    assert not [each for each in found if isinstance(each, e.ApprovalAsked)]
    assert [(each.allowed, each.by, each.rule) for each in found if isinstance(each, e.ToolDecided)] == [
        (True, "policy", "session config: approvals = allow"),
        (False, "policy", "setting 'rm' refuses the command"),
    ]
    [begun] = [each for each in found if isinstance(each, e.SessionStarted)]
    assert (begun.config, begun.by) == ({"approvals": "allow"}, "task:task-1")


async def told(host: Host) -> list[e.Event]:
    """Of the only session."""
    [summary] = host.list()
    return [record.event for record in await host.log.read(f"session/{summary.id}")]


INSIDE = [
    "rm -r build",
    "rm -rf build/* && make > log",
    "rm -f {folder}/a {temp}/b",
    "cd build && rm -rf dist",
    "bash -lc 'rm -r build'",
    "cd / && ls",
    "git rm a",
    "grep -r rm .",
    "npm install",
    "curl -O https://example.org/x",
]
BEYOND = {
    "rm -rf /": "'rm'",
    "rm -rf ~/x": "'rm'",
    "rm -rf $X": "'rm'",
    "rm -rf build/$X": "'rm'",
    "rm -rf {{build,/}}": "'rm'",
    "rm -rf build/../../x": "'rm'",
    "rm -rf out/x": "'rm'",
    "cd / && rm -rf build": "'rm'",
    "cd && rm -rf build": "'rm'",
    "cd build && rm -rf ../..": "'rm'",
    "rm -rf {folder}-evil": "'rm'",
    "rm -rf {temp}": "'rm'",
    "ls / | xargs rm": "'rm'",
    "find / -exec rm {{}} +": "'rm'",
    "bash -lc 'rm -rf /'": "'rm'",
    "sudo id": "'sudo'",
    "make; X=1 sudo id": "'sudo'",
    "echo $(doas id)": "'doas'",
    "git -c alias.x='!su' x": "'su'",
    "echo x > {home}/settings.toml": "the host itself",
    "cp x {home}/tokens.json": "the host itself",
}


@pytest.mark.parametrize(("line", "asks"), [*((line, "") for line in INSIDE), *BEYOND.items()], ids=[*INSIDE, *BEYOND])
async def test_what_reaches_beyond_a_jobs_folders_waits_for_a_person(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, asks: str
) -> None:
    """`sudo id`, a change of the host's own settings and `rm -rf ~` passed in a job, since nobody is there to ask."""
    folder, home = tmp_path / "work", tmp_path / "work" / ".portico"
    home.mkdir(parents=True)
    (folder / "out").symlink_to(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    monkeypatch.setattr(jail, "_closed", [home])
    host = await open_host(Maker(line.format(folder=folder, home=home, temp=tmp_path / "temp")))
    host.approval_timeout = 0.01
    assert await outcome(host, folder) == "taskSucceeded"
    asked = [each.why for each in await told(host) if isinstance(each, e.ApprovalAsked)]
    assert (len(asked), asks in "".join(asked)) == (bool(asks), True), asked


async def test_a_job_waits_for_the_answer(open_host: HostOpener, tmp_path: Path) -> None:
    """As long as that takes, where no `approval_timeout` is set; and it goes on with either answer."""
    host = await open_host(Maker("sudo id", "sudo make"))
    running = asyncio.create_task(outcome(host, tmp_path))
    async for records in host.log.follow():
        for asked in (record.event for record in records if isinstance(record.event, e.ApprovalAsked)):
            assert asked.expires == 0
            answer = AnswerApproval(approval=asked.approval, allow=asked.command == "sudo id")
            await host.do(answer, Caller("token-1", "ada", frozenset({"approve"})))
        if any(isinstance(record.event, je.TaskEnded) for record in records):
            break
    assert await running == "taskSucceeded"
    answers = [(each.allowed, each.by) for each in await told(host) if isinstance(each, e.ApprovalAnswered)]
    assert answers == [(True, "token:ada"), (False, "token:ada")]
