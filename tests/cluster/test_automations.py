"""Automations of several hosts on one log: each is there once, at every host, and nothing runs twice.

Two hosts gave their automations the same ids and wrote over each other's, a hook's secret was good at one of them only,
and each host deleted what stood in the other's automations.toml.
"""

import asyncio
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest

from portico.cluster.shared_files import SharedFiles
from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.automations import Automations
from portico.features.automations.commands import RunNamed
from portico.features.automations.source import apply
from portico.kernel import commands as c
from portico.kernel.errors import Unauthenticated
from tests.automation.playing import made, opened, plan
from tests.cluster.conftest import Node, Nodes


async def with_automations(nodes: Nodes, name: str, **more: Any) -> tuple[Node, Automations]:
    node = await nodes(name, **more)
    automations = await opened(node.host, nodes.folder / name, lease=node.host.members)
    node.host.workspaces = [nodes.folder]
    node.host.members.on_held(automations.begin)
    return node, automations


def play(text: str = "x") -> dict[str, Any]:
    return {"prompt": {"text": text, "agent": "play"}}


async def until(condition: Any) -> None:
    """What one host writes another hears of by itself."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the bell of a database rings for the log, not for a test
            await asyncio.sleep(0.01)


async def test_made_at_any_host_they_are_there_once_at_all(nodes: Nodes) -> None:
    (_, a), (_, b) = await with_automations(nodes, "a"), await with_automations(nodes, "b")
    idents = [(await made(at, f"n{number}", **play())).automation for number, at in enumerate((a, b, a, b))]
    assert len(set(idents)) == 4
    await until(lambda: len(a.store.automations) == len(b.store.automations) == 4)
    assert {each.name: each.id for each in a.store.automations.values()} == {
        each.name: each.id for each in b.store.automations.values()
    }
    run: RunNamed = await b.host.do(ac.RunAutomation(automation="n0"), c.Caller.inside("me"))
    await until(lambda: run.run in b.store.runs and not b.store.runs[run.run].open)
    assert b.store.runs[run.run].status == "succeeded"
    await b.host.do(ac.PauseAutomation(automation="n1"), c.Caller.inside("me"))
    await until(lambda: not a.store.get("n1").enabled)


@pytest.mark.parametrize("where", [{"label": "gpu"}, {"place": "cellar"}, {"place": "gpu"}])
async def test_a_run_begins_where_its_plan_says(nodes: Nodes, where: dict[str, str]) -> None:
    (_, a), (there, _) = (
        await with_automations(nodes, "a"),
        await with_automations(nodes, "b", place="cellar", labels=["gpu"]),
    )
    await made(a, "train", prompt={"text": "x", "agent": "play", **where})
    run: RunNamed = await a.host.do(ac.RunAutomation(automation="train"), c.Caller.inside("me"))
    await until(lambda: run.run in a.store.runs and not a.store.runs[run.run].open)
    found = a.store.runs[run.run]
    assert (found.status, there.cluster.owns(f"session/{found.session}")) == ("succeeded", True), found.reason


def github(secret: str, body: bytes) -> dict[str, str]:
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


async def test_a_delivery_to_both_hosts_runs_once(nodes: Nodes) -> None:
    (na, a), (nb, b) = await with_automations(nodes, "a"), await with_automations(nodes, "b")
    a.secrets.make()
    for node, name in ((na, "a"), (nb, "b")):
        await SharedFiles(node.log, nodes.folder / name).begin()
    secret = (await made(b, "pushed", hook={}, overlap="queue", **play())).secret
    await until(lambda: a.store.find("pushed") and b.store.find("pushed"))
    bodies = [b'{"n": %d}' % number for number in range(5)]
    found = await asyncio.gather(
        *(at.deliver("pushed", github(secret, body), body) for body in bodies for at in (a, b, a, b))
    )
    assert len({each.run for each in found}) == 5
    await until(lambda: len(b.store.runs) == 5 and not any(run.open for run in b.store.runs.values()))
    assert [(run.status, run.reason) for run in b.store.runs.values()] == [("succeeded", "")] * 5
    assert len(nb.host.list()) == 5
    with pytest.raises(Unauthenticated):
        await b.deliver("pushed", github("whsec_else", b"{}"), b"{}")


@pytest.mark.parametrize("place", ["here", "elsewhere"])
async def test_a_host_that_slept_claims_nothing_that_another_has_claimed(nodes: Nodes, place: str) -> None:
    """As SIGSTOP for longer than its lease: it woke up with the scheduler's lease in its memory."""
    first, a = await with_automations(nodes, "a", lease=1.0)
    await made(a, "often", schedule={"every": "1h"}, **play())
    assert first.cluster.held()
    await first.pause()
    second, b = await with_automations(nodes, "b", place=place, lease=30.0)
    await until(second.cluster.held)
    await until(lambda: b.timer.next(b.store.get("often").id) is not None)
    due = b.timer.next(b.store.get("often").id)
    assert due is not None
    await b._due({b.store.get("often").id: due}, due)
    await until(lambda: [run.status for run in b.store.runs.values()] == ["succeeded"])
    await a._due({a.store.get("often").id: due}, due)  # it wakes up
    records = await second.log.read_all(f"automation/{b.store.get('often').id}")
    assert [each.event.due for each in records if isinstance(each.event, ae.RunReserved)] == [due]
    assert not first.cluster.held()


async def test_the_next_host_goes_on_with_a_run_of_a_dead_one(nodes: Nodes) -> None:
    first, a = await with_automations(nodes, "a", lease=1.0)
    second, b = await with_automations(nodes, "b", lease=30.0)
    await made(a, "waits", **play("wait"))
    run: RunNamed = await a.host.do(ac.RunAutomation(automation="waits"), c.Caller.inside("me"))
    await first.agent.began.wait()
    await until(lambda: run.run in b.store.runs and b.store.runs[run.run].status == "running")
    await first.kill()
    await until(second.cluster.held)
    await until(lambda: not b.store.runs[run.run].open)
    assert b.store.runs[run.run].status == "interrupted"
    again = (await made(b, "later", **play())).automation
    assert again not in a.store.automations


FILE = '[nightly]\nschedule = { cron = "0 3 * * *" }\nprompt = { text = "x", agent = "play" }\n'


async def test_the_file_is_the_same_at_all_hosts(nodes: Nodes) -> None:
    (na, a), (nb, b) = await with_automations(nodes, "a"), await with_automations(nodes, "b")
    here, there = nodes.folder / "a/automations.toml", nodes.folder / "b/automations.toml"
    there.write_text(FILE.replace("nightly", "mine"))
    shared = SharedFiles(na.log, here.parent), SharedFiles(nb.log, there.parent)
    here.write_text(FILE)
    await shared[0].begin()
    await na.log.flush()
    await shared[1].begin()
    assert there.read_text() == FILE
    assert there.with_name("automations.toml.replaced").read_text() == FILE.replace("nightly", "mine")
    await look(shared, here, there, a, b)
    assert names(a) == names(b) == {"nightly"}
    there.write_text(FILE.replace("nightly", "weekly"))
    await look(tuple(reversed(shared)), here, there, a, b)
    assert names(a) == names(b) == {"weekly"}
    assert here.read_text() == there.read_text()
    here.unlink()
    await look(shared, here, there, a, b)
    assert names(a) == names(b) == set()
    assert not here.exists()


async def look(shared: Any, here: Path, there: Path, a: Automations, b: Automations) -> None:
    """As the servers do every second."""
    for each in shared:
        await each.share()
        await each._log.flush()
    await apply(there, b)
    await apply(here, a)
    await until(lambda: names(a) == names(b))


def names(automations: Automations) -> set[str]:
    return {each.name for each in automations.store.automations.values()}


async def test_a_plan_is_judged_where_it_is_asked_for_and_done_where_the_lease_is(nodes: Nodes) -> None:
    (_, a), (_, b) = await with_automations(nodes, "a"), await with_automations(nodes, "b")
    with pytest.raises(Exception, match="cron has five"):
        await b.host.do(
            ac.CreateAutomation(name="x", plan=plan(schedule={"cron": "* * *"}, **play())), c.Caller.inside("me")
        )
    assert names(a) == names(b) == set()
