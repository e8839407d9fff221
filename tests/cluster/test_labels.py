"""A job runs where it asks to, and its works at hosts with their labels: on one host's own engine and on Temporal."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from portico.cluster import cluster as module
from portico.cluster.forward import Forwarding
from portico.cluster.postgres.opening import OWNED
from portico.features.jobs import Jobs
from portico.features.jobs import commands as jc
from portico.features.jobs import events as je
from portico.features.jobs import temporal_messages as messages
from portico.features.jobs.temporal import TemporalJobs
from portico.kernel import commands as c
from portico.kernel.errors import PorticoError, Unreachable
from portico.server.settings import JobSettings
from portico.testing.temporal import TemporalServer
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import ADA, eventually
from tests.jobs.playing import until_ended
from tests.jobs.samples import ref, seq
from tests.postgres import Databases
from tests.process import HostProcess, portico

Data = dict[str, Any]


def entry(tasks: dict[str, Data], model: str = "play", **job: object) -> Data:
    """A job that does all of them in a line."""
    return {
        "models": {"driving": model},
        "drivingSessionRetries": [{"modelId": model, "retries": 1}],
        "tasks": {
            name: {"model": {"category": "driving"}, "prompt": [name], "requireUserInput": False, **task}
            for name, task in tasks.items()
        },
        "jobs": {"main": {"work": seq(*map(ref, tasks)), **job}},
        "grid": [],
    }


async def owner(url: str, channel: str) -> str:
    """Return the owner of the channel. With Temporal, a job gets its owner shortly after its start."""
    connection = await asyncpg.connect(url)
    try:
        sql = "SELECT h.name FROM portico.owners o JOIN portico.hosts h ON h.id = o.host WHERE o.channel = $1"
        async with asyncio.timeout(30):
            while (name := await connection.fetchval(sql, channel)) is None:
                continue
        return str(name)
    finally:
        await connection.close()


async def owners_of_works(node: Node, url: str, job: str) -> dict[str, str]:
    """By task: who did it."""
    events = await until_ended(node.log, f"job/{job}")
    assert isinstance(events[-1], je.JobEnded)
    assert events[-1].outcome == "succeeded", events
    return {event.task: await owner(url, f"task/{event.task}") for event in events if isinstance(event, je.WorkStarted)}


@pytest.fixture(params=["local", "temporal"])
async def with_jobs(nodes: Nodes, request: pytest.FixtureRequest) -> AsyncIterator["JobNodes"]:
    made = JobNodes(nodes, request.getfixturevalue("temporal") if request.param == "temporal" else None)
    yield made
    for jobs in made.jobs.values():
        await jobs.close()


class JobNodes:
    def __init__(self, nodes: Nodes, temporal: TemporalServer | None) -> None:
        self.nodes, self.temporal = nodes, temporal
        self.jobs: dict[str, Jobs] = {}

    async def __call__(self, name: str, place: str = "here", *labels: str, **more: Any) -> Node:
        owned = OWNED if self.temporal is None else tuple(each for each in OWNED if each != "job/")
        node = await self.nodes(name, place=place, labels=list(labels), owned=owned, **more)
        if self.temporal is None:
            self.jobs[name] = await Jobs.open(node.host)
        else:
            settings = JobSettings(engine="temporal", address=self.temporal.address)
            self.jobs[name] = await TemporalJobs.connect(node.host, None, settings)
        node.host.members.listening("http://127.0.0.1:1", self.jobs[name].recover)
        return node


PLAIN: dict[str, Data]
GPU: dict[str, Data]
BIG: dict[str, Data]
PLAIN, GPU, BIG = {"plain": {}}, {"train": {"label": "gpu"}}, {"fit": {"label": "big"}}
ALONE_THERE = "No host of 'here' with the label 'gpu' is there. The hosts: 'a' at 'here' (up); 'b' at 'cellar'"
CASES: list[tuple[Data, Data, str]] = [
    (entry(PLAIN), {}, "a"),
    (entry(PLAIN), {"place": "here"}, "a"),
    (entry(PLAIN), {"place": "cellar"}, "b"),
    (entry(PLAIN, place="cellar"), {}, "b"),
    (entry(PLAIN, place="cellar"), {"place": "here"}, "a"),
    (entry(PLAIN), {"place": "cellar", "label": "gpu"}, "b"),
    (entry(GPU, place="cellar"), {}, "b"),
    (entry(PLAIN, label="gpu", place="cellar"), {}, "b"),
    (entry(PLAIN), {"place": "moon"}, "There is no place or label 'moon'. There are: 'cellar', 'gpu', 'here'."),
    (entry(PLAIN), {"label": "moon"}, "There is no place or label 'moon'."),
    (entry(GPU), {}, ALONE_THERE),
    (entry(PLAIN), {"label": "gpu"}, ALONE_THERE),
    (entry(PLAIN, label="gpu"), {}, ALONE_THERE),
    (entry(BIG, place="cellar"), {}, "There is no place or label 'big'."),
]
"""An entry, what is asked besides, and the host that has it then, or why none."""


async def test_a_job_starts_where_it_asks_to(with_jobs: JobNodes, tmp_path: Path) -> None:
    a, _ = await with_jobs("a"), await with_jobs("b", "cellar", "gpu")
    for plan, asked, there in CASES:
        command = jc.StartJob(job="main", cwd=str(tmp_path), entry=plan, **asked)
        if " " in there:
            with pytest.raises(PorticoError, match=re.escape(there)):
                await a.host.do(command, ADA)
            continue
        job = (await a.host.do(command, ADA)).job
        assert await owner(with_jobs.nodes.url, f"job/{job}") == there, asked
        assert set((await owners_of_works(a, with_jobs.nodes.url, job)).values()) == {there}


async def test_works_go_to_hosts_with_their_labels(with_jobs: JobNodes, tmp_path: Path) -> None:
    """Of one place: on Temporal each to its own; without it all of them to the host that has all labels."""
    a, _, _ = [await with_jobs(name, "here", *labels) for name, *labels in (["a"], ["b", "gpu"], ["c", "gpu", "big"])]
    plan = entry({**GPU, **BIG, "more": {}}, label="gpu")
    job = (await a.host.do(jc.StartJob(job="main", cwd=str(tmp_path), entry=plan), ADA)).job
    train, fit, more = (await owners_of_works(a, with_jobs.nodes.url, job)).values()
    assert fit == "c"
    assert {train, more} <= ({"b", "c"} if with_jobs.temporal else {"c"})
    again = (await a.host.do(jc.RetryJob(job=job), ADA)).job
    assert list((await owners_of_works(a, with_jobs.nodes.url, again)).values())[1] == "c"


async def test_a_job_says_for_which_label_it_waits(
    with_jobs: JobNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only host with the label is told to stop in the middle of a work."""
    monkeypatch.setattr(messages, "LABEL_SECONDS", 0.5)
    a, b = await with_jobs("a"), await with_jobs("b", "here", "gpu", lease=1.0)
    command = jc.StartJob(job="main", cwd=str(tmp_path), entry=entry({"wait": {"label": "gpu"}, "plain": {}}))
    job = (await a.host.do(command, ADA)).job
    await asyncio.wait_for(b.agent.began.wait(), 30)
    await with_jobs.jobs.pop("b").close()
    await b.close()
    with_jobs.nodes.nodes.remove(b)
    jobs, waits = with_jobs.jobs["a"], "with the label 'gpu'"
    await eventually(lambda: waits in jobs.job(job).reason)
    assert "(stopped, 'gpu')" in jobs.job(job).reason
    if with_jobs.temporal is None:
        assert (jobs.job(job).status, jobs.job(job).waits_for) == ("waiting", "label")
        assert jobs.job(job).reason.endswith("It goes on by itself when there is one.")
        before = a.log.head(f"job/{job}")
        await jobs.recover()
        assert a.log.head(f"job/{job}") == before
    back = await with_jobs("c", "here", "gpu")
    back.agent.go.set()
    lost, again, *_ = (await owners_of_works(a, with_jobs.nodes.url, job)).values()
    assert (lost, again) == ("a", "c")


async def test_a_waiting_job_is_not_resumed_where_its_label_is_missing(nodes: Nodes, tmp_path: Path) -> None:
    made = JobNodes(nodes, None)
    a, b = await made("a"), await made("b", "here", "gpu", lease=1.0)
    command = jc.StartJob(job="main", cwd=str(tmp_path), entry=entry({"wait": {"label": "gpu"}}))
    job = (await a.host.do(command, ADA)).job
    await asyncio.wait_for(b.agent.began.wait(), 30)
    await b.kill()
    await eventually(lambda: made.jobs["a"].job(job).status == "waiting")
    with pytest.raises(PorticoError, match="No host of 'here' with the label 'gpu' is there"):
        await a.host.do(jc.ResumeJob(job=job), ADA)
    assert made.jobs["a"].job(job).status == "waiting"
    await a.host.do(jc.StopJob(job=job), ADA)
    for asked in (jc.ResumeJob(job=job), jc.RetryJob(job=job)):
        with pytest.raises(PorticoError, match="No host of 'here' with the label 'gpu' is there"):
            await a.host.do(asked, ADA)
    await made.jobs["a"].close()


class Waiting(JobNodes):
    """Host `a` has a job that waits for a label. No host looks at the others but when it is told to."""

    @classmethod
    async def begin(cls, nodes: Nodes, folder: Path, monkeypatch: pytest.MonkeyPatch, *labels: str) -> "Waiting":
        monkeypatch.setattr(module, "WATCH_SECONDS", 3600.0)
        made = cls(nodes, None)
        made.a, b = await made("a"), await made("b", "here", *labels)
        tasks: dict[str, Data] = {each: {"label": each} for each in labels}
        command = jc.StartJob(job="main", cwd=str(folder), entry=entry({**tasks, "wait": {}}))
        made.job = (await made.a.host.do(command, ADA)).job
        await asyncio.wait_for(b.agent.began.wait(), 30)
        await made.a.cluster.look()
        await made.jobs.pop("b").close()
        await b.close()
        nodes.nodes.remove(b)
        return made

    a: Node
    job: str

    async def goes_on_at(self, name: str) -> None:
        node = next(node for node in self.nodes.nodes if node.cluster.name == name)
        node.agent.go.set()
        async with asyncio.timeout(30):
            while not self.jobs[name].job(self.job).done:
                await node.cluster.look()
        assert self.jobs[name].job(self.job).status == "succeeded"
        assert await owner(self.nodes.url, f"job/{self.job}") == name
        for jobs in self.jobs.values():
            await jobs.close()


async def test_a_job_is_handed_to_a_host_whose_jobs_are_not_open(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug: a host says its labels before it can run jobs; it refused the job, owned it, and never looked again."""
    made = await Waiting.begin(nodes, tmp_path, monkeypatch, "gpu")
    await made.a.cluster.look()
    back = await nodes("c", labels=["gpu"])
    await made.a.cluster.look()
    await eventually(lambda: back.host.members.owns(f"job/{made.job}"))
    await back.cluster.look()
    made.jobs["c"] = await Jobs.open(back.host)
    back.host.members.listening("http://127.0.0.1:1", made.jobs["c"].recover)
    await made.goes_on_at("c")


async def test_a_job_goes_on_where_nobody_says_that_it_was_handed_over(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host that handed it over ends before it can tell the other."""

    async def lost(self: Forwarding) -> None:
        raise Unreachable("The host has ended.")

    made = await Waiting.begin(nodes, tmp_path, monkeypatch, "gpu")
    await made.a.cluster.look()
    back = await made("c", "here", "gpu")
    await back.cluster.look()
    monkeypatch.setattr(Forwarding, "send", lost)
    await made.a.cluster.look()
    assert await owner(nodes.url, f"job/{made.job}") == "c"
    await made.goes_on_at("c")


async def test_a_label_comes_back_between_two_looks(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is gone for whoever asks for its label, and there again when somebody looks which labels are new."""
    made = await Waiting.begin(nodes, tmp_path, monkeypatch, "gpu")

    async def come_back() -> None:
        if "c" not in made.jobs:
            await made("c", "here", "gpu")

    made.a.cluster.taken.append(come_back)
    await made.a.cluster.look()
    assert made.jobs["a"].job(made.job).status == "waiting"
    await made.a.cluster.look()
    await made.goes_on_at("c")


async def test_a_job_waits_for_two_labels_of_one_host(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is there, and no host with both: the one that comes has no label that is new."""
    made = await Waiting.begin(nodes, tmp_path, monkeypatch, "gpu", "big")
    for name, label in (("d", "gpu"), ("e", "big")):
        await made(name, "here", label)
        await made.a.cluster.look()
    assert made.jobs["a"].job(made.job).status == "waiting"
    await made("c", "here", "gpu", "big")
    await made.a.cluster.look()
    await made.goes_on_at("c")


async def test_jobs_that_others_start_and_end_while_a_host_opens_its_own(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = JobNodes(nodes, None)
    a, b = await made("a"), await nodes("b")
    command = jc.StartJob(job="main", cwd=str(tmp_path), entry=entry({"wait": {}}))
    started = [(await a.host.do(command, ADA)).job]
    await b.log.catch_up()
    read = b.log.read

    async def meanwhile(channel: str, after: int, limit: int) -> Any:
        found = await read(channel, after, limit)
        if len(started) == 1:
            started.append((await a.host.do(command, ADA)).job)
            await a.host.do(jc.StopJob(job=started[0]), ADA)
            await b.log.catch_up()
        return found

    monkeypatch.setattr(b.log, "read", meanwhile)
    jobs = await Jobs.open(b.host)
    statuses = {each.id: each.status for each in jobs.history()}
    assert statuses == dict(zip(started, ("canceled", "running"), strict=True))
    await made.jobs["a"].close()


@pytest.mark.parametrize("engine", ["local", "temporal"])
async def test_a_host_with_the_label_dies(
    databases: Databases, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    """In the middle of a work, by SIGKILL; what is done is not done again, and another host with the label goes on."""
    url = await databases.new()
    shared: Data = {"PORTICO_LOG_URL": url, "PORTICO_CLUSTER_PLACE": "here", "PORTICO_CLUSTER_LEASE_SECONDS": "2"}
    if engine == "temporal":
        address = request.getfixturevalue("temporal").address
        shared |= {"PORTICO_JOBS_ENGINE": "temporal", "PORTICO_JOBS_ADDRESS": address}

    def host(name: str, labels: str = "") -> HostProcess:
        return HostProcess(tmp_path / name, **shared, PORTICO_CLUSTER_HOST=name, PORTICO_CLUSTER_LABELS=labels)

    def until(http: httpx.Client, job: str, holds: Any) -> Data:
        end = time.monotonic() + 90
        while True:
            found: Data = http.get(f"/v1/jobs/{job}").raise_for_status().json()
            if holds(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.05)

    def client(host: HostProcess) -> httpx.Client:
        token = (host.home / "token").read_text().strip()
        return httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    slowly = ["[[delay:600000]]"]
    tasks: dict[str, Data] = {"first": {"prompt": ["[[say:done]]"]}, "second": {"prompt": slowly, "label": "gpu"}}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(entry(tasks, "scripted")), "utf-8")
    with host("a") as a, host("b", "gpu") as b, client(a) as http:
        begun = portico(a.home, "run", "main", "--entry", str(plan), "--cwd", str(tmp_path), "--detach")
        job = begun.stdout.strip()
        works = until(http, job, lambda each: len(each.get("works", [])) == 2)["works"]
        assert await owner(url, f"task/{works[1]['task']}") == "b"
        b.kill()
        with host("c", "gpu"):
            before = works[1]["task"]
            again = until(http, job, lambda job: job["works"][1]["task"] != before)["works"]
            assert await owner(url, f"task/{again[1]['task']}") == "c"
            assert [(each["name"], each["status"], each.get("runs")) for each in again] == [
                ("first", "succeeded", None),
                ("second", "running", 2),
            ]
            assert portico(a.home, "jobs", "stop", job).returncode == 0
    assert again[0] == works[0]
    databases.give_back(url)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            jc.StartJob(job="main", cwd="/", entry=entry(GPU)),
            "There is no host with the label 'gpu'. This one is alone",
        ),
        (jc.StartJob(job="main", cwd="/", entry=entry(PLAIN), label="gpu"), "its cluster.labels: 'small'."),
        (jc.StartJob(job="main", cwd="/", entry=entry(PLAIN), place="attic"), "alone on its log: leave 'place' out."),
        (c.StartSession(label="gpu"), "alone on its log: leave 'place' and 'label' out."),
        (c.StartSession(place="attic"), "alone on its log: leave 'place' and 'label' out."),
    ],
)
async def test_a_host_that_is_alone_refuses_what_it_is_not(host: Any, command: c.Command, words: str) -> None:
    host.members.labels = ["small"]
    await Jobs.open(host)
    with pytest.raises(PorticoError) as refused:
        await host.do(command, ADA)
    assert words in refused.value.message
