"""Steps that talk to others: people, services and other jobs."""

import asyncio
from pathlib import Path
from textwrap import dedent

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.call import CALL_DEPTH
from portico.kernel import events as e
from portico.kernel.host import Host
from tests.jobs.playing import both_engines, until_started
from tests.jobs.workflow.playing import finish, run, start, steps


async def question(host: Host) -> e.QuestionAsked:
    async for records in host.log.follow():
        for record in records:
            if isinstance(record.event, e.QuestionAsked):
                return record.event
    raise AssertionError


async def answer(host: Host, text: str) -> e.QuestionAsked:
    asked = await question(host)
    session = await host.get(host.session_of(asked.question))
    await session.questions.answer(asked.question, "accept", {"answer": text}, by="token:ann")
    return asked


@both_engines
async def test_a_person_sees_values_and_chooses(host: Host, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note")
    jobs = await Jobs.open(host)
    text = """
        steps:
          - {id: plan, run: echo the plan}
          - id: decision
            ask: Do {{ steps.plan.output }}?
            show: ["{{ steps.plan.output }}", "file:note.txt", "changes"]
            choices: [Do it, Leave it]
          - {id: done, if: "{{ steps.decision.answer == 'Do it' }}", run: echo done}
        result: "{{ steps.done.output }}"
    """
    job = await start(jobs, text, tmp_path)
    asked = await answer(host, "do it")
    assert asked.text == "Do the plan?"
    assert [each["text"] for each in asked.evidence] == ["the plan", "a note", "Nothing was changed."]
    assert (await finish(jobs, job)).result == "done"


async def test_a_question_expires(host: Host, tmp_path: Path) -> None:
    ended = await run(host, "steps: [{ask: 'Well?', expires: 0.01}]", tmp_path)
    assert (ended.status, ended.error) == ("failed", "Well?: Nobody answered within 0.01 seconds.")


@both_engines
async def test_a_wait_for_a_hook(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    job = await start(jobs, "steps: [{wait: {hook: deployed}}, {wait: {until: '2020-01-01T00:00:00Z'}}]", tmp_path)
    await jobs.signal(job, "deployed", by="test")
    assert (await finish(jobs, job)).status == "succeeded"


class Service:
    """Answers every request with its own method, path and body."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.status = 200

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length")), 0)
        body = (await reader.readexactly(length)).decode()
        self.seen.append(f"{head.splitlines()[0]} {body}")
        data = b'{"ok": true}'
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        writer.close()


HTTP = """
    inputs: {{url: {{}}}}
    steps:
      - id: post
        may_fail: true
        http:
          method: POST
          url: "{{{{ inputs.url }}}}"
          headers: {{X-Name: "{{{{ run.name }}}}"}}
          json: {{text: "{{{{ inputs.url | length }}}}", list: ["{{{{ run.name }}}}"]}}
        output: json
        retry: {{times: {times}, wait: 0}}
    result: ["{{{{ steps.post.outcome }}}}", "{{{{ steps.post.output }}}}", "{{{{ steps.post.reason }}}}"]
"""


@pytest.mark.parametrize(("status", "times"), [(200, 0), (500, 2)])
async def test_a_request(host: Host, tmp_path: Path, status: int, times: int) -> None:
    service = Service()
    service.status = status
    async with await asyncio.start_server(service.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        jobs = await Jobs.open(host)
        jobs.services.allow_private = ["127.0.0.1"]
        url = f"http://127.0.0.1:{port}/hook"
        ended = await finish(jobs, await start(jobs, HTTP.format(times=times), tmp_path, url=url))
    line = f'POST /hook HTTP/1.1 {{"text":{len(url)},"list":["main"]}}'
    assert service.seen == [line] * (times + 1)
    if status == 200:
        assert ended.result == ["succeeded", {"ok": True}, ""]
    else:
        assert ended.result == ["failed", '{"ok": true}', f'POST {url} returned 500.\n{{"ok": true}}']


async def test_a_private_address_is_refused(host: Host, tmp_path: Path) -> None:
    ended = await run(host, HTTP.format(times=0), tmp_path, url="http://127.0.0.1:1/")
    assert ended.result[2] == (
        "'127.0.0.1' is 127.0.0.1, a private address. Name it in notices.allow_private if that is meant."
    )


def save(folder: Path, name: str, text: str) -> None:
    (folder / ".portico/jobs").mkdir(parents=True, exist_ok=True)
    (folder / ".portico/jobs" / name).write_text(dedent(text))


@both_engines
async def test_a_job_calls_another_one(host: Host, tmp_path: Path) -> None:
    save(
        tmp_path,
        "inner.yaml",
        "inputs: {n: {type: number}}\nsteps: [{id: a, run: 'echo {{ inputs.n + 1 }}'}]\nresult: '{{ steps.a.output }}'",
    )
    save(tmp_path, "asked.md", "---\nagent: scripted\n---\n[[say:from markdown]]\n")
    text = """
        steps:
          - {id: one, call: inner, inputs: {n: "{{ 40 + 1 }}"}}
          - {id: two, call: asked}
          - {id: three, call: nothing, may_fail: true}
        result: ["{{ steps.one.output }}", "{{ steps.two.output }}", "{{ steps.three.reason }}"]
    """
    ended = await run(host, text, tmp_path)
    assert ended.result[:2] == ["42", "from markdown"]
    assert "The workflows of" in ended.result[2]


async def test_jobs_that_call_each_other_end(host: Host, tmp_path: Path) -> None:
    save(tmp_path, "main.yaml", "steps: [{call: main}]")
    ended = await run(host, "steps: [{call: main}]", tmp_path)
    assert (ended.status, f"more than {CALL_DEPTH} times" in ended.error) == ("failed", True)


async def test_an_agent_answers_with_json(host: Host, tmp_path: Path) -> None:
    jobs = await Jobs.open(host)
    text = """
        steps:
          - id: review
            prompt: |
              [[say:Fine. ```json
              {"approved": true, "findings": ["a"]}
              ```]]
            output: {schema: {approved: boolean, findings: [string]}}
          - {if: "{{ steps.review.output.approved }}", id: after, run: "echo {{ steps.review.output.findings[0] }}"}
    """
    job = await start(jobs, text, tmp_path)
    assert (await finish(jobs, job)).error == ""
    assert (await steps(jobs, job))["after"]["output"] == "a"


@both_engines
async def test_each_round_of_a_loop_waits_for_a_call_of_its_own(host: Host, tmp_path: Path) -> None:
    """One call ended the waits of all rounds, so a loop that followed a pull request never waited again."""
    text = """
        steps:
          - loop: {most: 5, until: "{{ steps.count.output == 'xx' }}"}
            steps:
              - {id: hook, wait: {hook: changed}}
              - {id: count, run: "printf x >> count; cat count"}
        result: "{{ steps.count.output }}"
    """
    jobs = await Jobs.open(host)
    job = await start(jobs, text, tmp_path)
    await jobs.signal(job, "changed", by="test")
    await until_started(host.log, job, 3)
    assert (tmp_path / "count").read_text() == "x"
    assert jobs.job(job).status == "running"
    await jobs.signal(job, "changed", by="test")
    assert (await finish(jobs, job)).result == "xx"
