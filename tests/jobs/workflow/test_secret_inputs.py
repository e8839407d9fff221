"""Inputs of the type `secret`: who gets the value, where it is stored, and when it is removed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import Any

import pytest

from portico import limits
from portico.features.jobs import Jobs
from portico.features.jobs.entry import leaves_of
from portico.features.jobs.preview import draw_plan, preview
from portico.features.jobs.step import FlowStep, JobInput
from portico.features.jobs.workflow.files import load_text
from portico.features.jobs.workflow.inputs import HIDDEN, check_inputs
from portico.features.jobs.workflow.problem import WorkflowError
from portico.features.secrets.feature import HostSecrets
from portico.features.secrets.inputs import FILE, InputStore
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.kernel.host import Host
from portico.server.home import Home
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.jobs.playing import both_engines
from tests.jobs.workflow.playing import finish, start, steps

CANARY = "c4nary-0b7e51-value"
HEAD = "inputs: {token: {type: secret}, other: {default: x}}\n"
DAY = 24 * 3600 * 1000

REJECTED = {
    "prompt": "steps: [{prompt: 'Use {{ inputs.token }}'}]",
    "prompt with a filter": "steps: [{prompt: \"{{ inputs['token'] | upper }}\"}]",
    "question": "steps: [{ask: '{{ inputs.token }}?'}]",
    "choice": "steps: [{ask: x, choices: ['{{ inputs.token }}']}]",
    "shown value": "steps: [{ask: x, show: ['{{ inputs.token }}']}]",
    "shown file": "steps: [{ask: x, show: ['file:{{ inputs.token }}']}]",
    "name": "steps: [{run: x, name: '{{ inputs.token }}'}]",
    "name of an item": "steps: [{each: [1], name: '{{ inputs.token }}', steps: [{run: x}]}]",
    "each": "steps: [{each: '{{ [inputs.token] }}', steps: [{run: x}]}]",
    "if": "steps: [{if: \"{{ inputs.token == 'x' }}\", run: x}]",
    "until": "steps: [{loop: {most: 2, until: '{{ inputs.token }}'}, steps: [{run: x}]}]",
    "wait": "steps: [{wait: '{{ inputs.token }}'}]",
    "result": "steps: [{run: x}]\nresult: '{{ inputs.token }}'",
    "artifacts": "steps: [{run: x}]\nartifacts: ['{{ inputs.token }}']",
    "branch": "steps: [{run: x}]\nfolder: worktree\nbranch: '{{ inputs.token }}'",
    "env of the file": "env: {A: '{{ inputs.token }}'}\nsteps: [{run: x}]",
    "env of a group": "steps: [{env: {A: '{{ inputs.token }}'}, steps: [{run: x}]}]",
    "env of a prompt": "steps: [{env: {A: '{{ inputs.token }}'}, prompt: x}]",
    "command of a check": "steps: [{prompt: x, check: [{run: 'echo {{ inputs.token }}'}]}]",
    "files of a check": "steps: [{prompt: x, check: [{files: {exist: ['{{ inputs.token }}']}}]}]",
    "judge": "steps: [{prompt: x, check: [{model: '{{ inputs.token }}'}]}]",
    "person": "steps: [{prompt: x, check: [{person: '{{ inputs.token }}'}]}]",
    "text around it in a call": "steps: [{call: x, inputs: {a: 'Bearer {{ inputs.token }}'}}]",
    "name of a called job": "steps: [{call: '{{ inputs.token }}'}]",
}
WHOLE = {
    "all inputs": "steps: [{run: 'echo {{ inputs }}'}]",
    "a computed name": "steps: [{run: 'echo {{ inputs[inputs.other] }}'}]",
    "all inputs of a prompt": "steps: [{prompt: '{{ inputs | tojson }}'}]",
}
ACCEPTED = {
    "a command": ("steps: [{run: 'x {{ inputs.token }}'}]", ["token"]),
    "a command as a list": ("steps: [{run: [x, '{{ inputs.token }}']}]", ["token"]),
    "standard input": ("steps: [{run: x, stdin: '{{ inputs.token }}'}]", ["token"]),
    "its environment": ("steps: [{run: x, env: {A: '{{ inputs.token }}'}}]", ["token"]),
    "a variable": ("steps: [{run: 'x $PORTICO_INPUTS_TOKEN'}]", ["token"]),
    "a longer variable": ("steps: [{run: 'x $PORTICO_INPUTS_TOKEN_2'}]", []),
    "a header": ("steps: [{http: {url: 'https://x', headers: {A: 'B {{ inputs.token }}'}}}]", ["token"]),
    "a body": ("steps: [{http: {url: 'https://x', method: POST, json: {a: ['{{ inputs.token }}']}}}]", ["token"]),
    "a call": ("steps: [{call: x, inputs: {a: '{{ inputs.token }}'}}]", ["token"]),
    "another input": ("steps: [{run: 'x {{ inputs.other }}'}]", []),
}


def mistakes(text: str) -> list[str]:
    with pytest.raises(WorkflowError) as raised:
        load_text(HEAD + text, "main.yaml", "main")
    return raised.value.message.splitlines()


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED)
def test_a_secret_is_rejected_where_it_would_be_seen(text: str) -> None:
    (found,) = mistakes(text)
    assert found.split(":")[1] in ("2", "3", "4"), found
    assert "The input 'token' is a secret: only 'run' and 'http' steps use it" in found


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_all_inputs_together_are_rejected(text: str) -> None:
    assert "Name the input, such as inputs.other: some of them are secrets." in mistakes(text)[0]


@pytest.mark.parametrize(("text", "names"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_step_names_what_it_uses(text: str, names: list[str]) -> None:
    (step,) = leaves_of(load_text(HEAD + text, "main.yaml", "main").jobs["main"].work)
    assert isinstance(step, FlowStep)
    assert step.secret_inputs == names


@pytest.mark.parametrize("more", ["default: abcdef", "from: /a"])
def test_a_secret_has_no_value_in_a_file_or_payload(more: str) -> None:
    with pytest.raises(WorkflowError, match="A secret has no 'default' and no 'from'"):
        load_text(f"inputs: {{token: {{type: secret, {more}}}}}\nsteps: [{{run: x}}]", "main.yaml", "main")


def test_a_plan_shows_no_value() -> None:
    text = HEAD + "steps: [{run: 'echo {{ inputs.token }}'}, {http: {url: 'https://x/{{ inputs.token }}'}}]"
    entry = load_text(text, "main.yaml", "main")
    flow = entry.jobs["main"].flow
    assert flow is not None
    plan = preview(entry, "main", check_inputs(flow.inputs, {"token": CANARY}))
    assert (plan.inputs["token"], CANARY in draw_plan(plan)) == (HIDDEN, False)


# -- jobs ----------------------------------------------------------------------------------------------------------


async def with_secrets(host: Host, folder: Path) -> HostSecrets:
    secrets = HostSecrets(host, Home(folder / "home"))
    await host.add(secrets)
    return secrets


@asynccontextmanager
async def receiver() -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """An HTTP server on loopback, and the headers of the requests that it got."""
    got: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append({**dict(self.headers), "path": self.path})
            body = json.dumps({"auth": self.headers["Authorization"]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()


STEPS = """
    inputs: {token: {type: secret}, spare: {type: secret, required: false}, url: {}}
    steps:
      - {id: named, run: "printf %s {{ inputs.token }} > named; echo {{ inputs.token }} $PORTICO_INPUTS_TOKEN"}
      - {id: stdin, run: "cat > stdin; wc -c < stdin", stdin: "{{ inputs.token }}"}
      - {id: unnamed, run: "env | grep -c INPUTS_TOKEN || true"}
      - {id: spare, run: "echo empty:{{ inputs.spare }}:"}
      - id: sent
        http: {url: "{{ inputs.url }}/{{ inputs.token }}", headers: {Authorization: "Bearer {{ inputs.token }}"}}
        output: json
      - id: prompt
        prompt: "[[say:done]]"
        check: [{run: "env > check.env; test -f check.env"}]
      - {id: fails, run: "echo {{ inputs.token }} >&2; exit 3", may_fail: true}
      - {id: bad, run: "echo {{ {}[inputs.token] }}", may_fail: true}
      - {id: split, run: "echo {{ inputs.token.split('-')[9] }}", may_fail: true}
    result: "{{ steps.named.output }}"
"""


async def everything(host: Host) -> str:
    found = []
    for channel in host.log.channels(""):
        found += [record.data.decode() for record in await host.log.read(channel, 0, 10_000)]
    return "\n".join(found)


@both_engines
async def test_only_steps_that_name_a_secret_get_it(host: Host, tmp_path: Path) -> None:
    await with_secrets(host, tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    jobs = await Jobs.open(host)
    jobs.services.allow_private = ["127.0.0.1"]
    async with receiver() as (url, got):
        job = await start(jobs, STEPS, project, token=CANARY, url=url)
        ended = await finish(jobs, job)
        assert ended.status == "succeeded", ended.error
    found = await steps(jobs, job)
    assert found["named"]["output"] == "[redacted: token] [redacted: token]"
    assert (project / "named").read_text() == CANARY
    assert (found["stdin"]["output"], found["unnamed"]["output"]) == (str(len(CANARY)), "0")
    assert found["spare"]["output"] == "empty::"
    assert got[0]["Authorization"] == f"Bearer {CANARY}"
    assert (got[0]["path"], found["sent"]["output"]) == (f"/{CANARY}", {"auth": "Bearer [redacted: token]"})
    assert CANARY not in (project / "check.env").read_text()
    assert "PORTICO_INPUTS_TOKEN" not in (project / "check.env").read_text()
    assert [found[each]["outcome"] for each in ("fails", "bad", "split")] == ["failed"] * 3
    assert "exit code 3: echo [secret] >&2" in found["fails"]["reason"]
    assert (await jobs.inputs_of(job))["token"] == HIDDEN
    assert CANARY not in await everything(host)
    stored = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert [(path.name, path.stat().st_mode & 0o777) for path in stored] == [(FILE, 0o600)]


async def test_a_retry_and_a_restart_use_the_same_value(open_host: HostOpener, tmp_path: Path) -> None:
    text = """
        inputs: {token: {type: secret}}
        steps:
          - {id: a, run: "echo first"}
          - {id: b, run: "printf %s {{ inputs.token }} >> used; test -f ok"}
    """
    host = await open_host()
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    job = await start(jobs, text, tmp_path, token=CANARY)
    assert (await finish(jobs, job)).status == "failed"
    await jobs.close()
    host = await open_host()
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    (tmp_path / "ok").touch()
    assert (await finish(jobs, await jobs.retry(job, by="me", step="b"))).status == "succeeded"
    assert (tmp_path / "used").read_text() == CANARY * 2
    changed = dedent(text).replace("test -f ok", "true")
    assert (await finish(jobs, await jobs.retry(job, by="me", step="b", workflow=changed))).status == "succeeded"
    assert (tmp_path / "used").read_text() == CANARY * 3
    shown = dedent(text).replace("type: secret", "type: text")
    with pytest.raises(BadRequest, match="The input 'token' is missing"):
        await jobs.retry(job, by="me", step="b", workflow=shown)
    await jobs.close()


async def test_a_called_job_gets_the_reference(host: Host, tmp_path: Path) -> None:
    await with_secrets(host, tmp_path)
    folder = tmp_path / ".portico/jobs"
    folder.mkdir(parents=True)
    called = "inputs: {{key: {{type: {}}}}}\nsteps: [{{run: 'printf %s {{{{ inputs.key }}}} > got'}}]"
    (folder / "inner.yaml").write_text(called.format("secret"))
    (folder / "leak.yaml").write_text(called.format("text"))
    jobs = await Jobs.open(host)
    text = (
        "inputs: {{token: {{type: secret}}}}\nsteps: [{{id: a, call: {}, inputs: {{key: '{{{{ inputs.token }}}}'}}}}]"
    )
    assert (await finish(jobs, await start(jobs, text.format("inner"), tmp_path, token=CANARY))).status == "succeeded"
    assert (tmp_path / "got").read_text() == CANARY
    refused = await finish(jobs, await start(jobs, text.format("leak"), tmp_path, token=CANARY))
    assert "The input 'key' of 'leak' would get a secret" in refused.error
    first, second = [(await jobs.load(each)).inputs for each in ("job-1", "job-2")]
    assert first["token"] == second["key"]
    assert CANARY not in await everything(host)
    await jobs.close()


async def test_a_reference_of_another_job_is_only_a_text(host: Host, tmp_path: Path) -> None:
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    text = "inputs: {token: {type: secret}}\nsteps: [{run: 'printf %s {{ inputs.token }} > got'}]"
    first = await start(jobs, text, tmp_path, token=CANARY)
    await finish(jobs, first)
    reference = (await jobs.load(first)).inputs["token"]
    assert reference.startswith("secret:token-")
    await finish(jobs, await start(jobs, text, tmp_path, token=reference))
    assert (tmp_path / "got").read_text() == reference
    await jobs.close()


WRONG = {
    "too short": ("abc", "The input 'token': A secret has at least 4 characters"),
    "the placeholder": (HIDDEN, "is shown in place of a secret input"),
    "too long": ("x" * 70_000, "The input 'token': A secret has at most"),
}


@pytest.mark.parametrize(("value", "words"), WRONG.values(), ids=WRONG)
async def test_a_wrong_value_starts_nothing(host: Host, tmp_path: Path, value: str, words: str) -> None:
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    with pytest.raises(BadRequest, match=words.replace("[", r"\[")):
        await start(jobs, "inputs: {token: {type: secret}}\nsteps: [{run: x}]", tmp_path, token=value)
    assert jobs.history() == []
    await jobs.close()


async def test_hosts_that_share_the_steps_of_a_job_take_no_secret_input(host: Host, tmp_path: Path) -> None:
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    with pytest.raises(BadRequest, match="portico secrets set NAME"):
        await jobs.services.keep_inputs({"token": JobInput(type="secret")}, {"token": CANARY}, (), shared=True)
    await jobs.close()


async def test_a_value_that_is_gone_is_named(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    text = "inputs: {token: {type: secret}}\nsteps: [{run: 'echo {{ inputs.token }}; exit 1'}]"
    job = await start(jobs, text, tmp_path, token=CANARY)
    await finish(jobs, job)
    (tmp_path / "home" / FILE).unlink()
    with pytest.raises(NotFound, match="start the job again with its value"):
        await jobs.retry(job, by="me")
    await jobs.close()


# -- the store -----------------------------------------------------------------------------------------------------


def test_equal_values_are_stored_once_and_old_ones_are_removed(tmp_path: Path) -> None:
    store = InputStore(Home(tmp_path))
    first = store.keep({"a": "value-1", "b": "value-1"}, (), 0, ())
    assert store.keep({"a": "value-1"}, (), 5, ())["a"] == first["a"] != first["b"]
    assert store.values() == {"a": ["value-1"], "b": ["value-1"]}
    late = limits.INPUT_SECRET_DAYS * DAY + 3
    assert store.expired(late) == [first["b"]]
    store.remove([first["a"], first["b"]], late)
    assert store.values() == {"a": ["value-1"]}
    with pytest.raises(NotFound, match="'b'"):
        store.read([first["b"]])


def test_the_number_of_values_is_limited(tmp_path: Path) -> None:
    store = InputStore(Home(tmp_path))
    found = [store.keep({"a": f"value-{number}"}, (), number, ())["a"] for number in range(limits.INPUT_SECRETS)]
    last = store.keep({"a": "one-more"}, (), limits.INPUT_SECRETS, found[:1])["a"]
    assert store.read([found[0], last]) == ["value-0", "one-more"]
    with pytest.raises(NotFound):
        store.read([found[1]])
    with pytest.raises(Conflict, match="unfinished jobs"):
        store.keep({"a": "too-many"}, (), 999, [found[0], *found[2:], last])
    assert len(store.values()["a"]) == limits.INPUT_SECRETS


async def test_the_sweep_keeps_values_of_unfinished_jobs(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    host = await open_host(clock=clock)
    secrets = await with_secrets(host, tmp_path)
    jobs = await Jobs.open(host)
    ends = "inputs: {token: {type: secret}}\nsteps: [{run: 'true'}]"
    waits = "inputs: {token: {type: secret}}\nsteps: [{wait: {hook: go}}]"
    await finish(jobs, await start(jobs, ends, tmp_path, token=CANARY))
    open_one = await start(jobs, waits, tmp_path, token=f"{CANARY}-2")
    clock.advance((limits.INPUT_SECRET_DAYS + 1) * DAY / 1000)
    await secrets.sweep()
    store = InputStore(Home(tmp_path / "home"))
    assert store.values() == {"token": [f"{CANARY}-2"]}
    await jobs.stop_job(open_one, by="me")
    await secrets.sweep()
    assert store.values() == {}
    await jobs.close()
