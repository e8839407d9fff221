"""The choice of a sandbox: every place that has it, with every value, and on a host that requires one."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import RequestError

from portico.features.sandboxes.events import SandboxChosen
from portico.features.sandboxes.feature import Sandboxes
from portico.kernel.commands import SCOPES
from portico.kernel.errors import PorticoError
from portico.server.identity import new_token
from tests.automation.playing import until_over
from tests.client.test_acp import editing
from tests.doors.ahp.wire_client import Refused, WireClient
from tests.doors.mcp.test_mcp import connected, use
from tests.doors.standing import TOOLS, Standing, problem, standing
from tests.features import feature
from tests.jobs.playing import MODELS, ok, until_ended
from tests.process import portico

VALUES = "'off', 'project', 'strict'"


class Rejected(Exception):
    """`str` is the message that the user sees."""


Try = Callable[[Standing, Path, str], Awaitable[str]]


async def sandbox_of(here: Standing, session: str) -> str:
    found = await here.http.get("/v1/sandbox", params={"session": session})
    mode: str = found.json()["mode"]
    return mode


async def over_rest(here: Standing, folder: Path, mode: str) -> str:
    answer = await here.http.post("/v1/sessions", json={"agent": "scripted", "config": {"sandbox": mode}})
    if answer.status_code != 201:
        raise Rejected(answer.json()["error"])
    return await sandbox_of(here, answer.json()["id"])


async def changed_over_rest(here: Standing, folder: Path, mode: str) -> str:
    session = await here.start()
    answer = await here.http.patch(f"/v1/sessions/{session}", json={"config": {"sandbox": mode}})
    if answer.status_code != 200:
        raise Rejected(answer.json()["error"])
    return await sandbox_of(here, session)


async def with_the_cli(here: Standing, folder: Path, mode: str) -> str:
    args = ("send", "[[say:hello]]", "--agent", "scripted", "--sandbox", mode, "--detach", "--json")
    done = await asyncio.to_thread(portico, here.home.path, *args, "--cwd", str(folder))
    if done.returncode != 0:
        raise Rejected(done.stderr)
    return await sandbox_of(here, json.loads(done.stdout)["session"])


async def over_mcp(here: Standing, folder: Path, mode: str) -> str:
    async with connected(here, new_token(here.home, f"mcp-{mode}", list(SCOPES), tools=TOOLS)) as client:
        made = await use(client, "start_session", agent="scripted", sandbox=mode)
    if isinstance(made, str):
        raise Rejected(made)
    return await sandbox_of(here, made["session"])


async def over_ahp(here: Standing, folder: Path, mode: str) -> str:
    url = f"{here.url.replace('http', 'ws')}/ahp?tkn={here.home.token()}"
    client = WireClient(url, f"editor-{mode}", "1.0.0")
    await client.open()
    try:
        await client.initialize()
        resolved = await client.request("resolveSessionConfig", channel=client.root, provider="scripted")
        offered = resolved["schema"]["properties"]["sandbox"]["enum"]
        if mode in offered:
            assert resolved["values"]["sandbox"] in offered
        await client.request("createSession", channel="scripted:/s1", config={"sandbox": mode})
    except Refused as error:
        raise Rejected(str(error)) from None
    finally:
        await client.close()
    found = next(each for each in here.server.host.catalogue.live() if each.summary.uri == "scripted:/s1")
    return await sandbox_of(here, found.id)


async def over_acp(here: Standing, folder: Path, mode: str) -> str:
    async with editing(here.home.path, "--agent", "scripted") as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        made = await agent.new_session(cwd=str(folder), mcp_servers=[])
        assert "sandbox" in [each.id for each in made.config_options or []]
        try:
            await agent.set_config_option(config_id="sandbox", session_id=made.session_id, value=mode)
        except RequestError as error:
            raise Rejected(str(error)) from None
        return await sandbox_of(here, made.session_id)


async def _job(here: Standing, folder: Path, body: dict[str, Any]) -> str:
    """The sandbox of the sessions of a job."""
    answer = await here.http.post("/v1/jobs", json={"cwd": str(folder), **body})
    if answer.status_code != 201:
        raise Rejected(answer.json()["error"])
    job = answer.json()["job"]
    async with asyncio.timeout(60):
        await until_ended(here.server.host.log, f"job/{job}")
    return await _of_newest(here, (await here.http.get(f"/v1/jobs/{job}")).text)


async def _of_newest(here: Standing, otherwise: str) -> str:
    found = [each for each in here.server.host.catalogue.live() if each.summary.by.startswith(("task:", "run:"))]
    try:
        return feature(here.server.host, Sandboxes).mode(found[-1]) if found else _rejected(otherwise)
    except PorticoError as error:
        raise Rejected(error.message) from None


def _rejected(why: str) -> str:
    raise Rejected(why)


def entry(task: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    return {
        "models": MODELS,
        "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 0}],
        "tasks": {"one": ok(**task)},
        "jobs": {"main": {"work": {"kind": "Ref", "taskId": "one"}, "retrySeconds": [], **job}},
        "grid": [],
    }


async def of_a_task(here: Standing, folder: Path, mode: str) -> str:
    return await _job(here, folder, {"job": "main", "entry": entry({"sandbox": mode}, {"sandbox": "project"})})


async def of_a_job(here: Standing, folder: Path, mode: str) -> str:
    return await _job(here, folder, {"job": "main", "entry": entry({}, {"sandbox": mode})})


async def of_a_workflow(here: Standing, folder: Path, mode: str) -> str:
    text = f"sandbox: '{mode}'\nagent: scripted\nsteps:\n  - {{id: one, prompt: '[[say:done]]'}}\n"
    return await _job(here, folder, {"job": "main", "workflow": text})


async def of_an_automation(here: Standing, folder: Path, mode: str) -> str:
    prompt = {"text": "[[say:done]]", "agent": "scripted", "config": {"sandbox": mode}}
    made = await here.http.post("/v1/automations", json={"name": "one", "plan": {"prompt": prompt}})
    if made.status_code != 201:
        raise Rejected(made.json()["error"])
    run = (await here.http.post("/v1/automations/one/run", json={})).json()["run"]
    over = await until_over(here.server.automations, run)
    return await _of_newest(here, str(over))


async def for_a_folder(here: Standing, folder: Path, mode: str) -> str:
    answer = await here.http.put("/v1/sandbox", json={"folder": str(folder), "mode": mode})
    if answer.status_code != 200:
        raise Rejected(answer.json()["error"])
    return await sandbox_of(here, await here.start(cwd=str(folder)))


PLACES: list[Try] = [
    over_rest, changed_over_rest, with_the_cli, over_mcp, over_ahp, over_acp, of_a_task, of_a_job, of_a_workflow,
    of_an_automation, for_a_folder,
]  # fmt: skip
places = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)


@asynccontextmanager
async def host(folder: Path, **settings: Any) -> AsyncIterator[Standing]:
    flags = {f"sandbox.{name}": value for name, value in settings.items()}
    async with standing(folder, flags=flags) as here:
        yield here


@places
async def test_every_place_has_the_choice(tmp_path: Path, place: Try) -> None:
    for mode in ("project", "strict", "off"):
        async with host(tmp_path / mode) as here:
            assert await place(here, tmp_path / mode, mode) == mode


@places
async def test_every_place_names_the_values(tmp_path: Path, place: Try) -> None:
    async with host(tmp_path) as here:
        with pytest.raises(Rejected) as refused:
            await place(here, tmp_path, "yes")
        assert VALUES.replace("'", "") in str(refused.value).replace("'", "").replace('"', ""), refused.value
        assert "sandbox" in str(refused.value) or "mode" in str(refused.value)


@places
async def test_no_place_leaves_a_required_sandbox(tmp_path: Path, place: Try) -> None:
    async with host(tmp_path, require=True) as here:
        with pytest.raises(Rejected, match=r"sandbox.require|Should be one of 'project', 'strict'"):
            await place(here, tmp_path, "off")
        assert not [
            each for each in here.server.host.catalogue.live() if each.state.turns and each.state.turns[0].parts
        ]


async def test_the_choice_of_a_person_is_remembered_for_the_folder(tmp_path: Path) -> None:
    """New conversations there have it, in every client, also after a restart. Those that exist keep theirs."""
    folder, other = tmp_path / "one", tmp_path / "two"
    folder.mkdir()
    other.mkdir()
    async with host(tmp_path) as here:
        before = await here.start(cwd=str(folder))
        await here.start(cwd=str(folder), config={"sandbox": "project"})
        await _chosen(here, "project")
        assert await sandbox_of(here, before) == "off"
        assert await sandbox_of(here, await here.start(cwd=str(folder))) == "project"
        assert await sandbox_of(here, await here.start(cwd=str(other))) == "off"
        session = await here.start(cwd=str(folder))
        await here.http.patch(f"/v1/sessions/{session}", json={"config": {"sandbox": "strict"}})
        await _chosen(here, "strict")
    async with host(tmp_path) as here:
        shown = (await here.http.get("/v1/sandbox", params={"cwd": str(folder)})).json()
        assert (shown["mode"], shown["remembered"], shown["required"], shown["problem"]) == (
            "strict",
            "strict",
            False,
            "",
        )
        assert [each["id"] for each in shown["modes"]] == ["off", "project", "strict"]
        assert await sandbox_of(here, await here.start(cwd=str(folder))) == "strict"
        forgotten = await here.http.put("/v1/sandbox", json={"folder": str(folder)})
        assert forgotten.json() == {"folder": str(folder), "mode": ""}
        assert await sandbox_of(here, await here.start(cwd=str(folder))) == "off"


async def _chosen(here: Standing, mode: str) -> None:
    async with asyncio.timeout(30):
        async for records in here.server.host.log.follow("host"):
            if any(isinstance(each.event, SandboxChosen) and each.event.mode == mode for each in records):
                return


async def test_a_folder_is_chosen_by_who_may_approve(tmp_path: Path) -> None:
    """Inside, calls run without asking; and a program without a sandbox can do more than one in it."""
    async with host(tmp_path, default="strict") as here:
        for number, (scopes, status) in enumerate(((["read", "drive"], 403), (["read", "drive", "approve"], 201))):
            client = here.client(new_token(here.home, f"token-{number}", scopes))
            body = {"agent": "scripted", "cwd": str(tmp_path), "config": {"sandbox": "off"}}
            assert (await client.post("/v1/sessions", json=body)).status_code == status
            chosen = await client.put("/v1/sandbox", json={"folder": str(tmp_path), "mode": "project"})
            assert chosen.status_code == (403 if status == 403 else 200)
            await client.aclose()
        problem(
            await here.http.put("/v1/sandbox", json={"folder": "/no/such", "mode": "off"}), 400, "bad_request", "folder"
        )


async def test_concurrent_choices_are_all_stored(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for each in folders:
        each.mkdir()
    async with host(tmp_path) as here:
        bodies = [{"folder": str(each), "mode": "strict"} for each in folders]
        await asyncio.gather(*(here.http.put("/v1/sandbox", json=body) for body in bodies))
    async with host(tmp_path) as here:
        found = [(await here.http.get("/v1/sandbox", params={"cwd": str(each)})).json()["mode"] for each in folders]
    assert found == ["strict"] * 8


async def test_a_step_is_confined_where_a_sandbox_is_required(tmp_path: Path) -> None:
    """`run` steps of a workflow run outside of sandboxes. A host that requires one rejects everything unconfined."""
    line = "echo -n ${PORTICO_SANDBOX:-off}; ls /sys/class/net 2>/dev/null | wc -l; echo x > made"
    text = f"steps:\n  - {{id: one, run: '{line}'}}\nresult: '{{{{ steps.one.output }}}}'\n"
    for require, shown in ((False, "off"), (True, "project0")):
        folder = tmp_path / str(require)
        async with host(folder, require=require) as here:
            answer = await here.http.post("/v1/jobs", json={"cwd": str(folder), "job": "main", "workflow": text})
            await until_ended(here.server.host.log, f"job/{answer.json()['job']}")
            job = (await here.http.get(f"/v1/jobs/{answer.json()['job']}")).json()
            assert str(job["result"]).startswith(shown), job
            assert (folder / "made").exists()
