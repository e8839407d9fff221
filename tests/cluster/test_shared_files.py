"""What is a file of each home is the same at all hosts: tokens, people, keys, settings for everyone, automations."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import msgspec
import pytest

from portico.cluster.shared_files import SharedFiles, merged
from portico.features.automations.events import AutomationPlan
from portico.features.automations.state import AutomationState
from portico.features.people.people import add_person
from portico.kernel.errors import BadRequest
from portico.kernel.events import HOST, Audited, Event
from portico.server.home import Home
from portico.server.identity import new_token, revoke_token
from portico.server.settings import SHARED
from portico.server.settings_load import load
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import eventually
from tests.cluster.test_doors import flags, servers
from tests.doors import openid
from tests.doors.standing import Standing, standing
from tests.doors.test_oidc import settings as oidc_settings
from tests.postgres import Databases

__all__ = ["servers"]

X, Y, Z = ({"id": name, "name": name} for name in "xyz")
Y2 = {**Y, "scopes": ["read"]}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "wanted"),
    [
        ([X], [X, Y], [X], [X, Y]),
        ([X], [X], [X, Y], [X, Y]),
        ([X], [X, Y], [X, Z], [X, Z, Y]),
        ([X, Y], [X], [X, Y, Z], [X, Z]),
        ([X, Y], [X, Y, Z], [Y], [Y, Z]),
        ([X, Y], [X, Y2], [X, Y, Z], [X, Y2, Z]),
        ([X, Y], [X, Y2], [X], [X, Y2]),
        ([], [X], [Y], [Y, X]),
        ([X], [], [X, Y], [Y]),
    ],
)
def test_two_edits_of_one_list_become_one(base: object, ours: object, theirs: object, wanted: object) -> None:
    found = merged(*(json.dumps(each).encode() for each in (base, ours, theirs)))
    assert json.loads(found) == wanted


@pytest.mark.parametrize("ours", [b"key of ours", b"[1, 2]", b'[{"scopes": []}]', b"\xff"])
def test_what_is_no_list_is_replaced_as_a_whole(ours: bytes) -> None:
    assert merged(b"before", ours, b"theirs") == ours


class Homes:
    """Two homes on one database, looked at when a test says so."""

    def __init__(self, nodes: list[Node], folder: Path) -> None:
        self.homes = [Home(folder / f"home-{node.cluster.name}") for node in nodes]
        self.changed: list[str] = []
        for home in self.homes:
            home.make()
            home.token()
        self.shared = [
            SharedFiles(node.log, home.path, lambda name=node.cluster.name: self.changed.append(name))  # type: ignore[misc]
            for node, home in zip(nodes, self.homes, strict=True)
        ]

    async def look(self, index: int) -> None:
        await self.shared[index].share()

    def names(self, index: int) -> list[str]:
        path = self.homes[index].tokens_path
        return [each["name"] for each in json.loads(path.read_bytes())] if path.exists() else []


@pytest.fixture
async def homes(nodes: Nodes, tmp_path: Path) -> Homes:
    found = Homes([await nodes("a"), await nodes("b")], tmp_path)
    for shared in found.shared:
        await shared.begin()
    return found


async def test_the_second_host_takes_what_the_first_has(homes: Homes) -> None:
    assert homes.homes[0].token() == homes.homes[1].token()


async def test_a_token_that_was_revoked_does_not_come_back(homes: Homes) -> None:
    """Both hosts changed the list in the same moment: the later one wrote its own, with what the other had revoked."""
    one, other = homes.homes
    new_token(one, "old", ["read"])
    await homes.look(0)
    await homes.look(1)
    assert homes.names(1) == ["old"]
    revoke_token(one, "old")
    new_token(other, "new", ["read"])
    for index in (0, 1, 0):
        await homes.look(index)
    assert (homes.names(0), homes.names(1)) == (["new"], ["new"])


async def test_an_edit_between_the_question_and_the_answer_is_merged(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = homes.homes
    stored = homes.shared[0]._stored

    async def meanwhile() -> dict[str, bytes]:
        found = await stored()
        monkeypatch.setattr(homes.shared[0], "_stored", stored)
        new_token(other, "faster", ["read"])
        await homes.look(1)
        return found

    monkeypatch.setattr(homes.shared[0], "_stored", meanwhile)
    new_token(one, "slower", ["read"])
    await homes.look(0)
    assert homes.names(0) == ["slower"], "not lost, and not yet the others'"
    await homes.look(0)
    await homes.look(1)
    assert sorted(homes.names(0)) == sorted(homes.names(1)) == ["faster", "slower"]


async def test_a_file_that_is_edited_here_is_not_replaced_meanwhile(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit after the answer of the database would be lost with what is pulled over it."""
    one, other = homes.homes
    new_token(one, "theirs", ["read"])
    await homes.look(0)
    stored = homes.shared[1]._stored

    async def edited() -> dict[str, bytes]:
        found = await stored()
        new_token(other, "ours", ["read"])
        return found

    monkeypatch.setattr(homes.shared[1], "_stored", edited)
    await homes.look(1)
    monkeypatch.undo()
    await homes.look(1)
    await homes.look(0)
    assert sorted(homes.names(0)) == sorted(homes.names(1)) == ["ours", "theirs"]


async def test_many_edits_at_both_hosts_are_all_there(homes: Homes) -> None:
    for number in range(8):
        new_token(homes.homes[number % 2], f"t{number}", ["read"])
        await asyncio.gather(*(homes.look(index) for index in (0, 1)))
        if number % 3 == 2:
            revoke_token(homes.homes[number % 2], f"t{number}")
    for index in (0, 1, 0, 1):
        await homes.look(index)
    assert sorted(homes.names(0)) == sorted(homes.names(1)) == ["t0", "t1", "t3", "t4", "t6", "t7"]


async def test_a_list_that_is_removed_is_empty_everywhere_and_a_key_is_not(homes: Homes) -> None:
    one, other = homes.homes
    new_token(one, "gone", ["read"])
    (one.path / "hooks.key").write_bytes(b"k" * 32)
    await homes.look(0)
    await homes.look(1)
    (one.path / "hooks.key").unlink()
    one.tokens_path.unlink()
    await homes.look(0)
    await homes.look(1)
    assert (homes.names(1), (other.path / "hooks.key").read_bytes()) == ([], b"k" * 32)


async def test_who_has_nothing_new_is_not_told(homes: Homes) -> None:
    (homes.homes[0].path / SHARED).write_text("[agent]\n", "utf-8")
    for index in (0, 1, 1, 0):
        await homes.look(index)
    assert homes.changed == ["b"]


# -- whole servers ---------------------------------------------------------------------------------------------


async def soon(holds: Callable[[], bool]) -> float:
    """Seconds until it does; a bound that a busy machine keeps, the measured figure is in the guide."""
    began = time.monotonic()
    await eventually(holds)
    return time.monotonic() - began


async def test_a_person_and_their_token_are_known_at_every_host(servers: tuple[Standing, Standing]) -> None:
    """The list of people was each host's own: a person's token was refused at all hosts but one."""
    a, b = servers
    add_person(a.home, "ada", ["read", "drive"])
    token = new_token(a.home, "phone", ["read"], "ada")
    await soon(lambda: b.server.tokens.by_token(token) is not None)
    caller = b.server.tokens.by_token(token)
    assert caller is not None
    assert (caller.person, sorted(caller.scopes)) == ("ada", ["read"])


async def test_a_login_is_finished_at_another_host(databases: Databases, tmp_path: Path) -> None:
    """What it had begun with was in the memory of one host, and who came of it in the file of another."""
    url = await databases.new()
    async with openid.provider() as provider, AsyncExitStack() as stack:
        hosts = []
        for name in "ab":
            (tmp_path / name).mkdir()
            given = {**flags(url, name), **oidc_settings(provider.issuer)}
            hosts.append(await stack.enter_async_context(standing(tmp_path / name, flags=given)))
        a, b = hosts
        browser = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
        begun = await browser.get(f"{a.url}/login/oidc")
        answer = provider.authorize(begun.headers["location"])
        done = await browser.get(f"{b.url}/login/oidc/callback", params=answer)
        assert done.status_code == 200, done.text
        key = {"x-portico-key": done.text.partition("#key=")[2].partition('"')[0]}
        for host in (a, b):
            me = await browser.get(f"{host.url}/v1/people/me", headers=key)
            assert me.json()["person"] == "ann@example.org"
        assert (await browser.get(f"{a.url}/login/oidc/callback", params=answer)).status_code == 403
    databases.give_back(url)


async def test_a_settings_file_for_everyone(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    path = a.home.settings_path.with_name(SHARED)
    path.write_text('default_agent = "demo"\n[approvals]\ndeny_commands = ["rm"]\n', "utf-8")
    await soon(lambda: b.server.host.default_agent == "demo" == a.server.host.default_agent)
    assert b.server.loaded.settings.approvals.deny_commands == ["rm"]
    b.home.settings_path.write_text('default_agent = "scripted"\n', "utf-8")
    await soon(lambda: b.server.host.default_agent == "scripted")
    assert a.server.host.default_agent == "demo", "a host's own file comes first, and is its own"


async def test_a_hook_has_one_secret(servers: tuple[Standing, Standing]) -> None:
    """Its key was made by each host: what was signed for one was refused by the next."""
    plan = msgspec.convert({"job": {"job": "x"}}, AutomationPlan)
    state = AutomationState("automation-1", "x", plan, "ada", [], 0, 0, 0)
    assert len({each.server.automations.secrets.of(state) for each in servers}) == 1


async def test_a_change_is_written_down_once(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    token = new_token(a.home, "phone", ["read"])
    await soon(lambda: b.server.tokens.by_token(token) is not None)
    async for records in b.server.host.log.follow(HOST):
        if any(_tells_of_phone(record.event) for record in records):
            break
    for each in servers:
        await each.server._token_audit.look()
    assert [_tells_of_phone(record.event) for record in await b.server.host.log.read(HOST, limit=1000)].count(True) == 1


def _tells_of_phone(event: Event) -> bool:
    return isinstance(event, Audited) and (event.action, event.detail) == ("token.added", {"token": "phone"})


@pytest.mark.parametrize("line", ["[server]\nport = 1", "workspaces = ['/']", "[cluster]\nplace = 'x'"])
def test_what_is_a_hosts_own_is_not_set_for_everyone(tmp_path: Path, line: str) -> None:
    (tmp_path / SHARED).write_text(line, "utf-8")
    with pytest.raises(BadRequest, match="each host's own"):
        load(tmp_path / "settings.toml")
