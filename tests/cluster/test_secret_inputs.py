"""A job with a secret input whose place is another host: the value is not sent over a link that others can read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.cluster.link import Asked, is_private
from portico.features.jobs.commands import JobNamed, StartJob
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import ADA

CANARY = "c4nary-9d21-value"
WORKFLOW = "inputs: {key: {type: secret}, n: {default: one}}\nsteps: [{run: x}]\n"
PLAIN = "http://192.0.2.7:4000"
LINKS = {
    "http://127.0.0.1:1": True,
    "http://127.3.0.1:1": True,
    "http://[::1]:1": True,
    "https://192.0.2.7:1": True,
    "http://192.0.2.7:1": False,
    "http://0.0.0.0:1": False,
    "http://[::]:1": False,
    "http://127.example.org:1": False,
    "http://10.0.0.1:1": False,
}


@pytest.mark.parametrize(("url", "private"), LINKS.items(), ids=LINKS)
def test_a_link_is_private_with_tls_or_on_one_machine(url: str, private: bool) -> None:
    assert is_private(url) is private


def _job(folder: Path, **more: Any) -> StartJob:
    return StartJob(job="deploy", cwd=str(folder), inputs={"key": CANARY}, **more)


async def _jobs_of(node: Node) -> list[c.Command]:
    """The commands that this host gets, in place of jobs."""
    got: list[c.Command] = []

    async def start(command: StartJob, caller: c.Caller) -> JobNamed:
        got.append(command)
        return JobNamed("job-1")

    node.host.commands.handle(StartJob, start)
    return got


@pytest.mark.parametrize("here", ["a file of the folder", "a text", "only there"])
async def test_a_secret_is_not_sent_over_a_plain_link(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    a, b = await nodes("a"), await nodes("b", place="there")
    folder = tmp_path / "project"
    (folder / ".portico/jobs").mkdir(parents=True)
    command = _job(folder, place="there", workflow=WORKFLOW if here == "a text" else "")
    if here == "a file of the folder":
        (folder / ".portico/jobs/deploy.yaml").write_text(WORKFLOW)
    got, sent = await _jobs_of(b), list[bytes]()
    post, reached = a.cluster.link._post, b.cluster.link.url

    async def recorded(url: str, body: bytes) -> Any:
        if CANARY.encode() in body:
            sent.append(body)
        return await post(url.replace(PLAIN, reached), body)

    monkeypatch.setattr(a.cluster.link, "_post", recorded)
    assert await a.host.do(command, ADA) == JobNamed("job-1"), "on loopback it is sent"
    b.cluster.link.url = PLAIN
    await b.log.renew_now()
    assert len(got) == len(sent) == 1
    got.clear()
    sent.clear()
    if here == "only there":  # the sender cannot know, so the receiver rejects it
        (folder / ".portico/jobs/deploy.yaml").write_text(WORKFLOW)
        asked = Asked(msgspec.Raw(c.encode_command(command)), ADA, "")
        told = await b.cluster._answer(asked, command)
        assert (told.code, CANARY in told.message) == ("bad_request", False)
    else:
        with pytest.raises(BadRequest, match="no TLS, so the secret input 'key' is not sent") as refused:
            await a.host.do(command, ADA)
        assert CANARY not in refused.value.message
    assert (got, sent) == ([], [])
    without = StartJob(job="deploy", cwd=str(folder), place="there", inputs={"n": "two"}, workflow=command.workflow)
    assert await a.host.do(without, ADA) == JobNamed("job-1"), "other inputs are sent"
    assert len(got) == 1
