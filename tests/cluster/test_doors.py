"""Whole servers on one log: clients go on at another host with what they have from the first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from portico.doors.identity import new_token, revoke_token
from tests.doors.standing import Standing, standing
from tests.postgres import Databases


@pytest.fixture
async def servers(databases: Databases, tmp_path: Path) -> AsyncIterator[tuple[Standing, Standing]]:
    url = await databases.new()
    async with AsyncExitStack() as stack:
        found = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            flags = {"log.url": url, "cluster.host": name, "cluster.place": "here", "cluster.lease_seconds": 60.0}
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=flags)))
        yield found[0], found[1]
    databases.give_back(url)


async def test_a_client_goes_on_at_another_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    assert a.home.token() == b.home.token()
    session = await a.start(title="shared")
    await a.say(session, "[[say:first]]")
    page = (await a.http.get(f"/v1/sessions/{session}/events")).json()
    answer = await b.http.post(f"/v1/sessions/{session}/messages", json={"text": "[[say:second]]"})
    assert answer.status_code == 202
    await (await b.server.host.get(session)).wait(answer.json()["turn"])
    more = (await b.http.get(f"/v1/sessions/{session}/events", params={"after": page["events"][-1]["pos"]})).json()
    whole = (await a.http.get(f"/v1/sessions/{session}/events")).json()
    assert [*page["events"], *more["events"]] == whole["events"]
    states = [(await each.http.get(f"/v1/sessions/{session}")).json() for each in servers]
    assert states[0] == states[1]


async def test_the_hosts_are_listed_and_say_who_they_are(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    listed = (await b.http.get("/v1/hosts")).json()["hosts"]
    assert [(each["name"], each["place"], each["state"], each.get("here", False)) for each in listed] == [
        ("a", "here", "up", False),
        ("b", "here", "up", True),
    ]
    assert (await a.stranger.get("/healthz")).json() == {"ok": True, "host": "a", "place": "here"}
    assert 'host="b",place="here"' in (await b.http.get("/metrics")).text
    drained = await a.http.post("/v1/hosts/b/drain")
    assert drained.json()["state"] == "draining"
    async with asyncio.timeout(30):
        while (await b.stranger.get("/readyz")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    refused = await a.http.post("/v1/hosts/b/give-up")
    assert (refused.status_code, "drain it" in refused.text) == (409, True)


async def test_a_token_holds_at_every_host_and_ends_at_every_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers

    async def known(token: str, wanted: bool) -> None:
        """Not over HTTP: a door that hears wrong tokens again and again answers ever later."""
        async with asyncio.timeout(60):
            while (b.server.tokens.by_token(token) is not None) is not wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    token = new_token(a.home, "phone", ["read"])
    async with b.client(token) as phone:
        await known(token, True)
        assert (await phone.get("/v1/sessions")).status_code == 200
        revoke_token(a.home, "phone")
        await known(token, False)
        assert (await phone.get("/v1/sessions")).status_code == 401
