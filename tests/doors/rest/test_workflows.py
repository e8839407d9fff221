"""Workflows through REST, MCP and notices: inputs, rows, results, and who may do what."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from portico.features.jobs import events as je
from portico.features.notices.read import RESULT_CHARS, read_notice
from portico.testing.fixtures import HostOpener
from tests.doors.standing import Standing, standing
from tests.jobs.playing import until_ended

TEXT = """
    inputs: {names: {type: list}, n: {type: number, default: 1}}
    steps:
      - id: all
        each: "{{ inputs.names }}"
        may_fail: true
        steps: [{id: one, run: "test {{ item }} != b"}]
    result: {n: "{{ inputs.n }}", failed: "{{ steps.all.failed | map(attribute='name') | list }}"}
    artifacts: ["*.md"]
"""


def save(folder: Path, text: str = TEXT) -> Path:
    (folder / "p/.portico/jobs").mkdir(parents=True)
    (folder / "p/.portico/jobs/flow.yaml").write_text(dedent(text))
    (folder / "p/a.md").write_text("# A\n")
    return folder / "p"


async def run(host: Standing, cwd: Path, **more: Any) -> str:
    answer = await host.http.post("/v1/jobs", json={"job": "flow", "cwd": str(cwd), **more})
    assert answer.status_code == 201, answer.text
    job: str = answer.json()["job"]
    await until_ended(host.server.host.log, f"job/{job}")
    return job


async def test_a_workflow_is_started_and_read(tmp_path: Path) -> None:
    folder = save(tmp_path)
    async with standing(tmp_path) as host:
        job = await run(host, folder, inputs={"names": ["a", "b"], "n": "2"})
        found = (await host.http.get(f"/v1/jobs/{job}/result")).json()
        (artifact,) = found.pop("artifacts")
        result = {"n": 2, "failed": ["b"]}
        assert found == {"id": job, "status": "succeeded", "result": result, "error": "", "network": []}
        assert (artifact["path"], artifact["size"]) == ("a.md", 4)
        assert (await host.http.get(f"/v1/blobs/{artifact['blob']}")).text == "# A\n"
        whole = (await host.http.get(f"/v1/jobs/{job}")).json()
        assert whole["inputs"] == {"names": ["a", "b"], "n": 2}
        assert [(row["items"], row["status"]) for row in whole["rows"]] == [(["a"], "succeeded"), (["b"], "failed")]
        failed = (await host.http.get(f"/v1/jobs/{job}?rows=failed")).json()["rows"]
        assert [row["reason"].partition(":")[0] for row in failed] == ["The command failed with exit code 1"]
        assert (await host.http.get(f"/v1/jobs/{job}?rows=no")).status_code == 400


WRONG = {
    "a missing input": ({}, 400, "The input 'names' is missing."),
    "an unknown input": ({"inputs": {"names": [], "x": 1}}, 400, "There is no input 'x'."),
    "a wrong input": ({"inputs": {"names": [], "n": "x"}}, 400, "The input 'n' should be a number."),
    "no text": ({"input": "x", "inputs": {"names": []}}, 400, "The job 'flow' has no input for a text."),
    "no job": ({"job": "other"}, 404, "There is no job 'other'"),
    "inputs of an entry": ({"job": "hello", "inputs": {"a": 1}}, 400, "The job 'hello' is no workflow"),
    "a text with mistakes": ({"workflow": "steps: []"}, 400, "<flow>:1:8: steps: There is no step."),
}


@pytest.mark.parametrize(("more", "status", "message"), WRONG.values(), ids=WRONG)
async def test_wrong_starts_are_explained(tmp_path: Path, more: dict[str, Any], status: int, message: str) -> None:
    folder = save(tmp_path)
    async with standing(tmp_path) as host:
        answer = await host.http.post("/v1/jobs", json={"job": "flow", "cwd": str(folder), **more})
    assert (answer.status_code, message in answer.text) == (status, True), answer.text


async def test_a_missing_secret_is_reported_before_the_start(tmp_path: Path) -> None:
    folder = save(tmp_path, "steps: [{run: 'echo $KEY', secrets: [KEY]}]")
    async with standing(tmp_path) as host:
        answer = await host.http.post("/v1/jobs", json={"job": "flow", "cwd": str(folder)})
        assert (answer.status_code, "portico secrets set KEY" in answer.text) == (404, True), answer.text


CANARY = "canary-7c1d9e"


async def test_a_secret_is_in_the_step_and_nowhere_else(tmp_path: Path) -> None:
    text = """
        steps:
          - {id: use, run: "echo got $KEY; test -n \\"$KEY\\"", secrets: [KEY]}
          - {id: not, run: "echo none: $KEY"}
          - {id: say, prompt: "[[say:{{ steps.use.output }}]]"}
        result: ["{{ steps.use.output }}", "{{ steps.not.output }}"]
    """
    folder = save(tmp_path, text)
    async with standing(tmp_path) as host:
        done = await host.http.put("/v1/secrets/KEY", json={"value": CANARY})
        assert done.status_code < 300, done.text
        job = await run(host, folder)
        found = (await host.http.get(f"/v1/jobs/{job}/result")).json()
        assert found["result"] == ["got [redacted: KEY]", "none:"]
        records = await host.server.host.log.read_all(limit=10_000)
        assert [record for record in records if CANARY in repr(record.event)] == []


async def test_a_job_runs_again_from_a_step(tmp_path: Path) -> None:
    folder = save(tmp_path)
    async with standing(tmp_path) as host:
        job = await run(host, folder, inputs={"names": ["a"]})
        answer = await host.http.post(f"/v1/jobs/{job}/retry", json={"step": "all"})
        assert answer.status_code == 202, answer.text
        again = answer.json()["job"]
        await until_ended(host.server.host.log, f"job/{again}")
        assert (await host.http.get(f"/v1/jobs/{again}/result")).json()["result"] == {"n": 1, "failed": []}


RESULTS = {"none": (None, ""), "text": ("Done.", " Done."), "data": ({"a": 1}, ' {"a":1}')}


@pytest.mark.parametrize(("result", "words"), RESULTS.values(), ids=RESULTS)
async def test_a_notice_contains_the_result(open_host: HostOpener, result: object, words: str) -> None:
    host = await open_host()
    started = je.JobStarted("job-1", "nightly", {}, "/src/a", "token:ada")
    await host.log.append("job/job-1", started, je.JobEnded("job-1", "succeeded", "host", result=result))
    notice = await read_notice(host, (await host.log.read("job/job-1"))[-1], "")
    assert notice is not None
    assert notice.text == f"The job 'nightly' is done.{words}"


async def test_a_long_result_is_cut_in_a_notice(open_host: HostOpener) -> None:
    host = await open_host()
    started = je.JobStarted("job-1", "nightly", {}, "/src/a", "token:ada")
    await host.log.append("job/job-1", started, je.JobEnded("job-1", "succeeded", "host", result="x" * 5_000))
    notice = await read_notice(host, (await host.log.read("job/job-1"))[-1], "")
    assert notice is not None
    assert len(notice.text) == len("The job 'nightly' is done. ") + RESULT_CHARS
