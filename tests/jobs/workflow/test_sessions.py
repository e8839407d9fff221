"""Prompts that continue the session of an earlier prompt: `session: same`, or the id of the prompt."""

import asyncio
from pathlib import Path

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.entry import leaves_of
from portico.features.jobs.step import FlowStep, PromptDo
from portico.features.jobs.workflow.files import load_text
from portico.kernel import events as e
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import both_engines, until_started
from tests.jobs.workflow.playing import finish, run, start, steps
from tests.jobs.workflow.test_file import problems
from tests.jobs.workflow.test_folders import git, repository
from tests.jobs.workflow.test_restart import ended, restarted

__all__ = ["repository"]


async def prompts(host: Host) -> list[list[str]]:
    """The messages of each session, in the order in which the sessions were started."""
    found: dict[str, list[str]] = {}
    for record in await host.log.read_all(limit=10_000):
        match record.event:
            case e.SessionStarted(session=ident):
                found[ident] = []
            case e.HistoryCopied(turns=turns):
                found[record.channel.removeprefix("session/")] += [each["message"]["text"] for each in turns]
            case e.TurnStarted() as turn:
                found[record.channel.removeprefix("session/")].append(turn.message.text)
    return list(found.values())


async def until_sent(host: Host, turns: int) -> None:
    async for _ in host.log.follow():
        if sum(map(len, await prompts(host))) >= turns:
            return


@both_engines
async def test_a_prompt_continues_the_session_of_the_one_before(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: plan, prompt: "[[say:a plan]]"}
          - {id: build, prompt: "[[say:built]]", session: same}
          - {id: review, prompt: "[[say:fine]]"}
          - {id: note, prompt: "[[say:noted]]", session: build}
        result: "{{ steps.note.output }}"
    """
    jobs = await Jobs.open(host)
    ended = await finish(jobs, await start(jobs, text, tmp_path))
    assert (ended.status, ended.result) == ("succeeded", "noted")
    assert await prompts(host) == [["[[say:a plan]]", "[[say:built]]", "[[say:noted]]"], ["[[say:fine]]"]]
    assert all(session.closed for session in host.list())


async def test_each_round_continues_the_session_of_its_round(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: build, prompt: "[[say:built]]"}
          - loop: {most: 2}
            steps:
              - {id: review, prompt: "[[say:no]]"}
              - {id: explain, prompt: "[[say:because]]", session: same}
              - {id: fix, prompt: "[[say:fixed]]", session: build}
    """
    assert (await run(host, text, tmp_path)).status == "succeeded"
    assert await prompts(host) == [
        ["[[say:built]]", "[[say:fixed]]", "[[say:fixed]]"],
        ["[[say:no]]", "[[say:because]]"],
        ["[[say:no]]", "[[say:because]]"],
    ]


async def test_items_have_sessions_of_their_own(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - id: items
            each: [a, b]
            parallel: 2
            steps:
              - {prompt: "[[say:one]] {{ item }}"}
              - {prompt: "[[say:two]] {{ item }}", session: same}
    """
    assert (await run(host, text, tmp_path)).status == "succeeded"
    found = sorted(await prompts(host))
    assert found == [[f"[[say:one]] {item}", f"[[say:two]] {item}"] for item in "ab"]


async def test_a_step_after_one_that_was_skipped_begins_a_session(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: first, if: false, prompt: "[[say:one]]"}
          - {id: second, prompt: "[[say:two]]", session: first}
    """
    assert (await run(host, text, tmp_path)).status == "succeeded"
    assert await prompts(host) == [["[[say:two]]"]]


RULES = """
rules:
- {match: first, steps: [{do: write, path: a.txt, text: a}, {do: say, text: done}]}
- {match: second, steps: [{do: write, path: b.txt, text: b}, {do: say, text: done}]}
"""


async def test_only_the_changes_of_the_step_count(open_host: HostOpener, repository: Path) -> None:
    host = await open_host(rules=RULES)
    text = """
        steps:
          - {id: a, prompt: first}
          - {id: b, prompt: second, session: same, check: [{files: {changed_only: [b.txt]}}]}
        result: ["{{ steps.a.changes }}", "{{ steps.b.changes }}"]
    """
    ended = await run(host, text, repository)
    assert (ended.status, ended.error, ended.result) == ("succeeded", "", [["a.txt"], ["b.txt"]])


async def test_a_crash_of_the_agent_is_retried_in_the_same_session(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: plan, prompt: "[[say:a plan]]"}
          - {id: build, prompt: "[[crash]]", session: same, retry: {times: 1, wait: 0}}
    """
    ended = await run(host, text, tmp_path)
    assert ended.status == "failed"
    again = "The session crashed, please redo and here is the last request:\n[[crash]]"
    assert await prompts(host) == [["[[say:a plan]]", "[[crash]]", again]]


@both_engines
async def test_a_restart_continues_in_the_same_session(open_host: HostOpener, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: plan, prompt: "[[say:a plan]]"}
          - {id: build, prompt: "[[hang]]", session: same}
          - {id: note, prompt: "[[say:noted]]", session: same}
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, tmp_path)
    await until_started(jobs.host.log, "job-1", 2)
    await until_sent(jobs.host, 2)
    host, jobs = await restarted(open_host, jobs)
    await jobs.recover()
    await until_sent(host, 3)
    await jobs.stop_job("job-1", by="test")
    again = "The session crashed, please redo and here is the last request:\n[[hang]]"
    assert await prompts(host) == [["[[say:a plan]]", "[[hang]]", again]]
    await jobs.close()


@both_engines
async def test_a_retry_from_a_step_continues_a_copy(host: Host, tmp_path: Path) -> None:
    """Two retries would write into one session, and the session may be in a folder that is gone."""
    text = """
        steps:
          - {id: plan, prompt: "[[say:a plan]]"}
          - {id: build, prompt: "[[say:built]]", session: same, check: [{run: test -e good}], retry: {times: 0}}
          - {id: note, prompt: "[[say:noted]]", session: same}
    """
    jobs = await Jobs.open(host)
    job = await start(jobs, text, tmp_path)
    assert (await finish(jobs, job)).status == "failed"
    (tmp_path / "good").touch()
    again = await jobs.retry(job, by="test", step="build")
    assert (await finish(jobs, again)).status == "succeeded"
    first = ["[[say:a plan]]", "[[say:built]]"]
    assert await prompts(host) == [first, [*first, "[[say:noted]]"]]


WRONG = {
    "no prompt before": ("steps: [{prompt: p, session: same}]", "steps[0].session: There is no such prompt before it."),
    "only another agent": (
        "steps: [{agent: a, prompt: p}, {agent: b, prompt: q, session: same}]",
        "steps[1].session: A prompt that continues a session has the same settings as the one before it; "
        "different: agent.",
    ),
    "a later step": (
        "steps: [{prompt: p, session: b}, {id: b, prompt: q}]",
        "steps[0].session: There is no such prompt before it.",
    ),
    "a command": (
        "steps: [{id: a, run: x}, {prompt: q, session: a}]",
        "steps[1].session: There is no such prompt before it.",
    ),
    "no step": (
        "steps: [{id: plan, prompt: p}, {prompt: q, session: plna}]",
        "steps[1].session: Should be 'new', 'same' or the id of a prompt. Did you mean 'plan'?",
    ),
    "from outside of an item": (
        "steps: [{id: a, prompt: p}, {each: [1], steps: [{prompt: q, session: same}]}]",
        "Items and branches cannot continue a session from outside.",
    ),
    "from a branch": (
        "steps: [{parallel: [{id: a, prompt: p}, {prompt: q, session: a}]}]",
        "Items and branches cannot continue a session from outside.",
    ),
    "after the branches": (
        "steps: [{parallel: [{id: a, prompt: p}]}, {prompt: q, session: a}]",
        "Items and branches cannot continue a session from outside.",
    ),
    "from the other case": (
        "steps: [{if: '{{ run.id }}', steps: [{id: a, prompt: p}], else: [{prompt: q, session: a}]}]",
        "There is no such prompt before it.",
    ),
    "other settings": (
        "steps: [{id: a, prompt: p}, {prompt: q, session: a, sandbox: strict, budget: {dollars: 1}}]",
        "different: budget, sandbox.",
    ),
    "a fallback": (
        "steps: [{id: a, prompt: p}, {prompt: q, session: a, fallback: [b]}]",
        "steps[1].fallback: Another agent cannot continue a session: remove 'fallback'.",
    ),
    "another commit": (
        "folder: worktree\nsteps: [{id: a, prompt: p}, {prompt: q, session: a, at: '{{ steps.a.commit }}'}]",
        "different: at.",
    ),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_a_session_that_cannot_be_continued_is_a_mistake(text: str, expected: str) -> None:
    assert expected in problems(text)[0]


def test_a_file_without_sessions_gives_the_same_tree_as_before() -> None:
    entry = load_text("steps: [{id: a, prompt: p}, {prompt: q}]", "main.yaml", "main")
    assert [leaf.do for leaf in leaves_of(entry.jobs["main"].work) if isinstance(leaf, FlowStep)] == [
        PromptDo(task="a"),
        PromptDo(task="step_1"),
    ]


# -- exact handoff ---------------------------------------------------------------------------------------------------

HANDOFF = """
    folder: worktree
    steps:
      - run: mkfifo {{ run.folder }}/../moved
      - {id: build, prompt: "[[say:built]]"}
      - id: both
        parallel:
          - name: goes on
            steps:
              - {run: "echo later > later.txt; echo changed > list"}
              - {id: more, prompt: "[[say:more]]"}
              - run: echo moved > {{ run.folder }}/../moved
          - name: reviews
            steps:
              - {run: "read line < {{ run.folder }}/../moved"}
              - id: review
                at: "{{ steps.build.commit }}"
                prompt: "[[say:fine]]"
                check: [{run: "test ! -e later.txt && grep -q one list && touch left.txt && ! git symbolic-ref HEAD"}]
              - {id: tests, at: "{{ steps.build.commit }}", run: "git rev-parse HEAD; ls"}
    result:
      same: "{{ steps.review.commit == steps.build.commit == steps.tests.commit }}"
      output: "{{ steps.tests.output == steps.build.commit ~ '\\nlist' }}"
      check: "{{ steps.review.checks[0].commit == steps.build.commit }}"
      other: "{{ steps.more.commit != steps.build.commit }}"
"""


@both_engines
async def test_a_review_sees_exactly_the_commit_while_another_branch_edits(host: Host, repository: Path) -> None:
    jobs = await Jobs.open(host)
    job = await start(jobs, HANDOFF, repository)
    ended = await finish(jobs, job)
    assert (ended.status, ended.error) == ("succeeded", "")
    assert ended.result == {"same": True, "output": True, "check": True, "other": True}
    assert git(repository, "ls-tree", "--name-only", ended.branch).split() == ["later.txt", "list"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--format=%(refname:short)").split() == ["main", ended.branch]
    assert (await steps(jobs, job))["review"]["outcome"] == "succeeded"


async def test_what_a_step_at_a_commit_leaves_is_gone(host: Host, repository: Path) -> None:
    text = """
        steps:
          - {id: look, at: HEAD, run: "echo x > list; git commit -qam x; false", may_fail: true}
          - {id: again, at: main, run: "cat list"}
        result: "{{ steps.again.output }}"
    """
    ended = await run(host, text, repository)
    assert (ended.status, ended.result) == ("succeeded", "one")
    assert (git(repository, "status", "--porcelain"), len(git(repository, "worktree", "list").splitlines())) == ("", 1)


NO_COMMIT = {
    "no commit of that name": ("nothing", "'at' should be a commit of"),
    "an option": ("--all", "'at' should be a commit of"),
    "empty": ("{{ inputs.commit }}", "'at' should be a commit, and {{ inputs.commit }} is empty"),
}


@pytest.mark.parametrize(("at", "expected"), NO_COMMIT.values(), ids=NO_COMMIT)
async def test_what_is_no_commit_fails_the_step(host: Host, repository: Path, at: str, expected: str) -> None:
    text = f"inputs: {{commit: {{default: ''}}}}\nsteps: [{{run: 'true', at: '{at}'}}]"
    ended = await run(host, text, repository)
    assert (ended.status, expected in ended.error) == ("failed", True), ended.error


async def test_a_commit_needs_a_repository(host: Host, tmp_path: Path) -> None:
    ended = await run(host, "steps: [{run: 'true', at: HEAD}]", tmp_path)
    assert "`at` needs a git repository with a commit" in ended.error


def test_a_commit_of_a_step_needs_worktrees() -> None:
    text = "steps: [{id: a, prompt: p}, {prompt: q, at: '{{ steps.a.commit }}'}]"
    assert "Only steps in a worktree leave a commit: set 'folder: worktree'." in problems(text)[0]


async def test_a_step_at_a_commit_is_not_where_a_retry_begins(host: Host, repository: Path) -> None:
    text = """
        folder: worktree
        steps:
          - {id: build, prompt: "[[say:one]]"}
          - {run: "echo second > second.txt"}
          - {id: more, prompt: "[[say:two]]"}
          - {id: look, prompt: "[[say:fine]]", at: "{{ steps.build.commit }}"}
          - {id: last, run: "cat second.txt; test -e ../free"}
        result: "{{ steps.last.output }}"
    """
    jobs = await Jobs.open(host)
    job = await start(jobs, text, repository)
    assert (await finish(jobs, job)).status == "failed"
    (repository.parent / f"{repository.name}.worktrees").mkdir(exist_ok=True)
    (repository.parent / f"{repository.name}.worktrees" / "free").touch()
    assert (await finish(jobs, await jobs.retry(job, by="test", step="last"))).result == "second"


async def test_a_restart_in_a_step_at_a_commit_gives_it_a_clean_folder(open_host: HostOpener, repository: Path) -> None:
    text = """
        steps:
          - {id: slow, at: HEAD, run: "ls; touch left; test -e ../free || sleep 60"}
        result: "{{ steps.slow.output }}"
    """
    jobs = await Jobs.open(await open_host())
    await start(jobs, text, repository)
    trees = repository.parent / f"{repository.name}.worktrees"
    await until_started(jobs.host.log, "job-1")
    while not list(trees.glob("*/left")):  # noqa: ASYNC110 - the command has no event of its own
        await asyncio.sleep(0.01)
    _, jobs = await restarted(open_host, jobs)
    (trees / "free").touch()
    await jobs.recover()
    assert (await ended(jobs)).result == "list"
    assert sorted(each.name for each in trees.iterdir()) == ["free"]
    await jobs.close()
