"""Workflows that run: every kind of step, and what later steps see of it."""

from pathlib import Path

from portico.features.jobs import Jobs
from portico.kernel.host import Host
from tests.jobs.playing import both_engines
from tests.jobs.workflow.playing import finish, run, start, steps

WHOLE = """
    inputs:
      name: {type: text, default: world}
      only: {type: list, default: []}
    steps:
      - id: hello
        run: echo hello {{ inputs.name }}
      - id: data
        run: |
          echo '[{"name": "a b", "n": 1}, {"name": "$(touch x)", "n": 2}, {"name": "c", "n": 3}]'
        output: json
      - id: items
        each: "{{ steps.data.output }}"
        as: thing
        name: "{{ thing.name }}"
        parallel: 2
        may_fail: true
        steps:
          - id: one
            run: echo "<{{ thing.name }}>"; test {{ thing.n }} != 3
      - parallel:
          - {id: left, run: echo left}
          - {id: right, run: echo right}
      - loop: {most: 4, until: "{{ steps.count.output == 'xx' }}"}
        steps:
          - id: count
            run: printf x >> count; cat count
      - if: "{{ steps.items.failed | length > 5 }}"
        id: never
        run: exit 1
      - id: soft
        run: echo why >&2; exit 3
        may_fail: true
      - id: think
        prompt: "[[say:I saw {{ steps.left.output }}]]"
      - {id: pause, wait: 0.01}
    result:
      hello: "{{ steps.hello.output }}"
      items: "{{ steps.items.output }}"
      failed: "{{ steps.items.failed | map(attribute='name') | list }}"
      text: "{{ steps.left.output }} and {{ steps.right.output }}, {{ steps.soft.outcome }}, {{ steps.never.outcome }}"
      reason: "{{ steps.soft.reason }}"
      think: "{{ steps.think.output }}"
"""


@both_engines
async def test_a_workflow_with_every_kind_of_control_flow(host: Host, tmp_path: Path) -> None:
    ended = await run(host, WHOLE, tmp_path, name="$(touch y) 'q\"")
    assert (ended.status, ended.error) == ("succeeded", "")
    assert ended.result == {
        "hello": "hello $(touch y) 'q\"",
        "items": ["<a b>", "<$(touch x)>"],
        "failed": ["c"],
        "text": "left and right, failed, skipped",
        "reason": "The command failed with exit code 3: echo why >&2; exit 3\nwhy",
        "think": "I saw left",
    }
    assert [name for name in "xy" if (tmp_path / name).exists()] == []


async def test_a_failure_names_the_items(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - each: [a, b, c, d]
            steps:
              - run: "test {{ item }} = b || test {{ item }} = d"
          - run: touch never
        result: "{{ 1 }}"
    """
    ended = await run(host, text, tmp_path)
    assert (ended.status, ended.result) == ("failed", 1)
    assert ended.error.startswith("2 of 4 items failed: a, c.")
    assert not (tmp_path / "never").exists()


async def test_results_are_there_for_failed_steps(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = """
        steps:
          - id: bad
            may_fail: true
            prompt: "[[say:no]]"
            check: [{run: "echo broken; false"}]
            retry: {times: 0}
          - id: after
            run: echo {{ steps.bad.outcome }} {{ steps.bad.checks[0].passed }}
    """
    job = await start(jobs, text, tmp_path)
    assert (await finish(jobs, job)).status == "succeeded"
    found = await steps(jobs, job)
    assert found["after"]["output"] == "failed false"
    assert found["bad"]["output"] == "no"
    assert found["bad"]["reason"] == "Command failed with exit code 1: echo broken; false\nbroken"


async def test_the_name_of_a_step_is_one_line(host: Host, tmp_path: Path) -> None:
    text = """
        steps:
          - {id: plan, run: "printf 'one\\ntwo\\n'"}
          - {id: build, name: "Do {{ steps.plan.output }}", run: "true"}
        result: "{{ steps.build.name }}"
    """
    assert (await run(host, text, tmp_path)).result == "Do one two"
