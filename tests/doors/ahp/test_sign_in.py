"""An agent that wants a token: who is asked, what is answered, and that the token goes nowhere else."""

import logging

import pytest

from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient

RESOURCE = "https://vendor.example"
WANTED = {
    "resource": RESOURCE,
    "resource_name": "Vendor Cloud",
    "scopes_supported": ["ask"],
    "required": True,
}


def session_of(client: WireClient, name: str = "vendor:/s") -> Json:
    return {"session" if client.seed else "channel": name, "provider": "vendor"}


def on_root(client: WireClient) -> Json:
    return {} if client.seed else {"channel": client.root}


async def test_a_session_needs_a_token_first(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    [vendor] = [each for each in client.states[client.root]["agents"] if each["provider"] == "vendor"]
    assert vendor["protectedResources"] == [WANTED]
    with pytest.raises(Refused) as refused:
        await client.request("createSession", **session_of(client))
    assert (refused.value.code, refused.value.data) == (-32007, [WANTED] if client.seed else {"resources": [WANTED]})
    with pytest.raises(Refused) as refused:
        await client.request("authenticate", **on_root(client), resource=RESOURCE, token="bad-token")
    assert refused.value.code == -32007
    assert await client.request("authenticate", **on_root(client), resource=RESOURCE, token="good-token") == {}
    await client.request("createSession", **session_of(client))


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"resource": "https://other.example", "token": "x"}, "resource"),
        ({"resource": RESOURCE}, "token"),
        ({"resource": RESOURCE, "token": 3}, "token"),
        ({"resource": RESOURCE, "token": "x" * 20_001}, "token"),
        ({"resource": RESOURCE, "token": "x", "expiresIn": -1}, "expiresIn"),
        ({"resource": RESOURCE, "token": "x", "scopes": "ask"}, "scopes"),
    ],
)
async def test_what_is_wrong_is_named(connect: Connect, params: Json, field: str) -> None:
    client = await connect()
    with pytest.raises(Refused) as refused:
        await client.request("authenticate", channel=client.root, **params)
    assert (refused.value.code, refused.value.data) == (-32602, {"field": field})


async def test_an_expired_token_is_asked_for_again(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    await client.request("authenticate", **on_root(client), resource=RESOURCE, token="good-token")
    await client.request("createSession", **session_of(client))
    chat = "vendor:/s" if client.seed else "ahp-chat://default/dmVuZG9yOi9z"
    await client.subscribe(chat)
    prefix = "session" if client.seed else "chat"
    message = {"userMessage": {"text": "expire"}} if client.seed else {"message": {"text": "expire"}}
    await client.dispatch(chat, f"{prefix}/turnStarted", turnId="t-1", **message)
    ended = await client.action(f"{prefix}/error")
    error = ended["part"]["error"] if client.dialect.since("0.9.0") else ended["error"]
    assert error["errorType"] == "sign_in_required"
    if client.seed:
        told: Json = {"notification": {"type": "notify/authRequired", "resource": RESOURCE, "reason": "expired"}}
        await client.wait(lambda: [each for each in client.notices if each["params"] == told])
    else:
        resource = WANTED if client.dialect.since("0.8.0") else RESOURCE
        told = {"channel": client.root, "resource": resource, "reason": "expired"}
        await client.wait(lambda: [each for each in client.notices if each["method"] == "auth/required"])
        assert [each["params"] for each in client.notices if each["method"] == "auth/required"] == [told]
    await client.request("authenticate", **on_root(client), resource=RESOURCE, token="good-token", expiresIn=3600)
    again = {"userMessage": {"text": "hi"}} if client.seed else {"message": {"text": "hi"}}
    await client.dispatch(chat, f"{prefix}/turnStarted", turnId="t-2", **again)
    await client.action(f"{prefix}/turnComplete")


async def test_the_token_goes_nowhere_else(served: Served, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = await connect()
    await client.request("authenticate", channel=client.root, resource=RESOURCE, token="good-token")
    for wrong in ("canary-7f3a", "canary-7f3a" * 3_000):
        with pytest.raises(Refused) as refused:
            await client.request("authenticate", channel=client.root, resource=RESOURCE, token=wrong)
        assert "canary" not in str(refused.value)
    await client.close()
    await served.stop()
    kept = b"".join(path.read_bytes() for path in served.home.path.rglob("*") if path.is_file())
    ours = [record for record in caplog.records if record.name.startswith("portico")]
    for secret in ("good-token", "canary-7f3a"):
        assert secret.encode() not in kept
        assert not any(secret in record.getMessage() for record in ours)
    await served.start()


async def test_a_token_counts_for_the_client_that_gave_it(connect: Connect) -> None:
    """A second client created sessions, and ran turns, with the token of the first."""
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    await client.request("authenticate", channel=client.root, resource=RESOURCE, token="good-token")
    chat = await client.create_session("vendor:/s", provider="vendor")
    await client.say(chat, "t-1", "[[say:mine]]")
    assert (await client.idle(chat))["turns"][0]["state"] == "complete"
    with pytest.raises(Refused) as refused:
        await other.request("createSession", channel="vendor:/other", provider="vendor")
    assert (refused.value.code, refused.value.data) == (-32007, {"resources": [WANTED]})
    await other.subscribe(chat)
    await other.say(chat, "t-2", "[[say:theirs]]")
    state = await other.idle(chat)
    assert state["turns"][1]["state"] == "error"
    await other.wait(lambda: [each for each in other.notices if each["method"] == "auth/required"])
    assert not [each for each in client.notices if each["method"] == "auth/required"]
    await other.request("authenticate", channel=other.root, resource=RESOURCE, token="good-token")
    await other.say(chat, "t-3", "[[say:theirs]]")
    assert (await other.idle(chat))["turns"][2]["state"] == "complete"


async def test_an_empty_token_takes_the_last_one_back(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    await client.request("authenticate", **on_root(client), resource=RESOURCE, token="good-token")
    await client.request("createSession", **session_of(client))
    assert await client.request("authenticate", **on_root(client), resource=RESOURCE, token="") == {}
    field = "session" if client.seed else "channel"
    with pytest.raises(Refused) as refused:
        await client.request("createSession", **{**session_of(client), field: "vendor:/other"})
    assert refused.value.code == -32007
    with pytest.raises(Refused) as refused:
        await client.request("authenticate", **on_root(client), resource=RESOURCE)
    assert refused.value.code == -32602
