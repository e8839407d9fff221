"""Worktrees of runs and items: what a run leaves, and what happens to conflicts."""

import subprocess
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.kernel.host import Host
from tests.jobs.playing import both_engines
from tests.jobs.workflow.playing import finish, run, start, steps
from tests.jobs.workflow.test_steps import question


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    (folder / "list").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


FAN_OUT = """
    folder: worktree
    branch: "deps/{{ run.id }}"
    steps:
      - id: update
        each: [a, b, c]
        parallel: 3
        folder: worktree
        may_fail: true
        steps:
          - run: echo {{ item }} > {{ item }}.txt; test {{ item }} != b
      - id: seen
        run: ls *.txt
    result: "{{ steps.seen.output }}"
    artifacts: ["*.txt"]
"""


@both_engines
async def test_items_are_merged_in_order_and_the_checkout_stays(host: Host, repository: Path) -> None:
    ended = await run(host, FAN_OUT, repository)
    assert (ended.status, ended.error, ended.result) == ("succeeded", "", "a.txt\nc.txt")
    assert ended.branch == "deps/job-1"
    assert git(repository, "ls-tree", "--name-only", ended.branch) == "a.txt\nc.txt\nlist"
    assert (git(repository, "status", "--porcelain"), git(repository, "branch", "--show-current")) == ("", "main")
    assert [line for line in git(repository, "worktree", "list").splitlines() if "deps" in line] == []
    assert [each.path for each in ended.artifacts] == ["a.txt", "c.txt"]
    assert await host.log.blob(ended.artifacts[0].blob) == b"a\n"


CONFLICT = """
    steps:
      - id: edit
        each: [a, b]
        folder: worktree
        merge: {how}
        steps:
          - run: echo {{ item }} > list
      - id: seen
        run: cat list
    result: "{{ steps.seen.output }}"
"""


async def test_a_conflict_fails_the_step_with_the_conflict_as_evidence(host: Host, repository: Path) -> None:
    jobs = await Jobs.open(host)
    job = await start(jobs, CONFLICT.replace("{how}", "fail"), repository)
    ended = await finish(jobs, job)
    assert ended.status == "failed"
    assert ended.error.startswith("The merge failed. merge: The merge of 'b' has conflicts in list:")
    assert (await steps(jobs, job))["edit"]["outcome"] == "failed"
    assert git(repository, "status", "--porcelain") == ""


async def test_an_agent_resolves_a_conflict(host: Host, repository: Path) -> None:
    ended = await run(host, CONFLICT.replace("{how}", "agent"), repository)
    assert (ended.status, "conflict markers in list" in ended.error) == ("failed", True)  # this agent writes nothing


async def test_a_prompt_ends_with_a_commit(host: Host, repository: Path) -> None:
    text = """
        folder: worktree
        steps:
          - run: echo new > new.txt
          - {id: work, prompt: "[[say:done]]"}
          - {id: seen, run: "git show --stat --format=%s {{ steps.work.commit }}"}
        result: "{{ steps.seen.output }}"
    """
    ended = await run(host, text, repository)
    assert (ended.status, "new.txt" in ended.result) == ("succeeded", True)


async def test_a_folder_without_git_is_refused(host: Host, tmp_path: Path) -> None:
    ended = await run(host, "folder: worktree\nsteps: [{run: 'true'}]", tmp_path)
    assert (ended.status, "git" in ended.error) == ("failed", True)


async def test_a_person_resolves_a_conflict(host: Host, repository: Path) -> None:
    jobs = await Jobs.open(host)
    job = await start(jobs, CONFLICT.replace("{how}", "ask"), repository)
    asked = await question(host)
    folder = asked.text.partition("Resolve them in ")[2].removesuffix(", then answer.")
    assert "<<<<<<<" in Path(folder, "list").read_text()  # noqa: ASYNC240 - a small file
    Path(folder, "list").write_text("a and b\n")  # noqa: ASYNC240 - a small file
    session = await host.get(host.session_of(asked.question))
    await session.questions.answer(asked.question, "accept", {"answer": "They are resolved"}, by="token:ann")
    ended = await finish(jobs, job)
    assert (ended.status, ended.result) == ("succeeded", "a and b")


async def test_branches_of_a_parallel_step_are_merged(host: Host, repository: Path) -> None:
    text = """
        steps:
          - id: both
            folder: worktree
            parallel:
              - {name: code, run: echo code > code.txt}
              - {name: docs, run: echo docs > docs.txt; echo x >> list}
          - {id: seen, run: ls}
        result:
          - "{{ steps.seen.output.split() | join(' ') }}"
          - "{{ steps.both.items | map(attribute='outcome') | list }}"
    """
    ended = await run(host, text, repository)
    assert (ended.status, ended.result) == ("succeeded", ["code.txt docs.txt list", ["succeeded", "succeeded"]])
    assert (repository / "list").read_text() == "one\n"


async def test_a_run_from_a_step_begins_at_the_commit_before_it(host: Host, repository: Path) -> None:
    text = """
        folder: worktree
        branch: "work-{{ run.id }}"
        steps:
          - run: echo one > a.txt
          - {id: first, prompt: "[[say:one]]"}
          - {id: second, run: "ls; echo two > b.txt"}
        result: "{{ steps.second.output.split() | join(' ') }}"
    """
    jobs = await Jobs.open(host)
    job = await start(jobs, text, repository)
    assert (await finish(jobs, job)).result == "a.txt list"
    again = await finish(jobs, await jobs.retry(job, by="test", step="second"))
    assert (again.status, again.result, again.branch) == ("succeeded", "a.txt list", "work-job-2")
    assert git(repository, "ls-tree", "--name-only", "work-job-2").split() == ["a.txt", "b.txt", "list"]
