"""What a token may do over AHP is what its scopes say, in every version."""

from typing import Any

import pytest

from portico.doors.ahp.connection import commands as methods
from portico.doors.ahp.wire import uri
from portico.features.approvals.policy import ApprovalRules
from portico.kernel.commands import READS
from portico.kernel.errors import LogUnavailable
from portico.server.identity import new_token
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_changesets import git
from tests.doors.ahp.wire_client import Refused, WireClient
from tests.features import feature


async def _with_scopes(served: Served, version: str, *scopes: str) -> WireClient:
    token = new_token(served.home, "-".join(("only", *scopes)), list(scopes))
    client = WireClient(served.url.rpartition("=")[0] + f"={token}", "guest", version)
    await client.open()
    await client.initialize(client.root)
    return client


async def test_answering_a_question_needs_the_scope_approve(served: Served, connect: Connect, version: str) -> None:
    """A token with `read drive` could answer an agent's question, and so decide what it does."""
    owner: WireClient = await connect(version)
    chat = await owner.create_session("scripted:/1")
    guest = await _with_scopes(served, version, "read", "drive")
    await guest.subscribe(chat)
    await guest.say(chat, "t", "ask me")
    asked = await owner.action(owner.verb("inputRequested"))
    answer = {"state": "submitted", "value": {"kind": "text", "value": "yes"}}
    which = {"requestId": asked["request"]["id"]}
    for kind, said in (
        ("inputAnswerChanged", {"questionId": "which", "answer": answer}),
        ("inputCompleted", {"response": "accept", "answers": {"which": answer}}),
        ("inputCompleted", {"response": "decline"}),
    ):
        echo = await guest.act(chat, guest.verb(kind), **which, **said)
        assert "approve" in echo["rejectionReason"]
    assert not owner.actions(owner.verb("inputCompleted"))
    await owner.act(chat, owner.verb("inputCompleted"), **which, response="accept", answers={"which": answer})
    await owner.action(owner.verb("turnComplete"))
    await guest.close()


async def test_rules_that_could_not_be_written_down_do_not_hold(
    served: Served, connect: Connect, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`root/configChanged` switched approval rules on although its append was refused."""
    client: WireClient = await connect(version)
    append = served.host.log.append_all

    async def refuse(*events: tuple[str, Any]) -> int:
        if any(channel == "host" for channel, _ in events):
            raise LogUnavailable("The disk is full.")
        return await append(*events)

    rules = {"globalAutoApproveEnabled": True}
    with monkeypatch.context() as patched:
        patched.setattr(served.host.log, "append_all", refuse)
        echo = await client.act(client.root, "root/configChanged", config=rules)
        assert echo["rejectionReason"] == "The disk is full."
    assert not feature(served.host, ApprovalRules).policy.clients.everything
    assert client.states[client.root]["config"]["values"] == {}
    await served.restart()
    assert not feature(served.host, ApprovalRules).policy.clients.everything
    client.url = served.url
    await client.open()
    await client.initialize(client.root)
    assert client.states[client.root]["config"]["values"] == {}
    await client.act(uri.SEED_ROOT if client.seed else uri.ROOT, "root/configChanged", config=rules)
    assert feature(served.host, ApprovalRules).policy.clients.everything


async def test_every_method_needs_what_the_table_says(served: Served) -> None:
    """Before anything else is looked at: with `drive` alone (without it nobody connects) the methods for which
    the tables of commands and reads name another scope are refused, whatever they are given; the others are not."""
    client = await _with_scopes(served, "1.0.0", "drive", "read")
    for name, method in methods.COMMANDS.items():
        if method.needs is None or name in ("initialize", "reconnect"):
            continue
        scope = READS[method.needs] if isinstance(method.needs, str) else method.needs.scope
        words = ""
        try:
            await client.request(name, channel="x", uri="x")
        except Refused as error:
            words = str(error)
        assert ("has no scope" in words) is (scope not in ("drive", "read", "any")), (name, words)
    await client.close()


async def test_a_diff_needs_read_as_over_http(served: Served) -> None:
    """The same diff was there with `read` over HTTP, and for an editor only with `files`."""
    git(served.work, "init")
    client = await _with_scopes(served, "1.0.0", "drive", "read")
    await client.create_session("scripted:/1")
    await client.subscribe("scripted:/1")
    [found] = [each for each in client.states["scripted:/1"]["changesets"] if each["changeKind"] == "session"]
    await client.subscribe(found["uriTemplate"])
    assert client.states[found["uriTemplate"]]["files"] == []
    await client.close()
