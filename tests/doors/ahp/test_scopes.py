"""What a token may do over AHP is what its scopes say, in every version."""

from typing import Any

import pytest

from portico.approvals.policy import WorkspacePolicy
from portico.doors.ahp.wire import uri
from portico.doors.identity import new_token
from portico.errors import LogUnavailable
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient


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
    assert not served.host.part(WorkspacePolicy).clients.everything
    assert client.states[client.root]["config"]["values"] == {}
    await served.restart()
    assert not served.host.part(WorkspacePolicy).clients.everything
    client.url = served.url
    await client.open()
    await client.initialize(client.root)
    assert client.states[client.root]["config"]["values"] == {}
    await client.act(uri.SEED_ROOT if client.seed else uri.ROOT, "root/configChanged", config=rules)
    assert served.host.part(WorkspacePolicy).clients.everything
