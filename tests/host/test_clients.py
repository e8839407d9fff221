"""Clients with an id of their own: whose it is, and what must not be kept."""

import pytest

from portico import commands as c
from portico import limits
from portico.errors import BadRequest, Forbidden, PorticoError
from portico.host.host import Host
from portico.testing.fixtures import HostOpener

ADA = c.Caller("token-1", "ada", frozenset({"read"}))
BOB = c.Caller("token-2", "bob", frozenset(c.SCOPES))


async def test_a_clients_id_belongs_to_the_token_that_used_it_first(open_host: HostOpener) -> None:
    host = await open_host()
    identify = c.IdentifyClient(client="editor", value={"version": "1", "caller": "token-2"})
    await host.do(identify, ADA)
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)
    host = await open_host()
    await host.do(identify, ADA)
    with pytest.raises(Forbidden, match="somebody else"):
        await host.do(identify, BOB)


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (c.IdentifyClient(client="x" * (limits.CLIENT_ID_CHARS + 1)), "client"),
        (c.SignIn(resource="r", token="x" * (limits.LOGIN_TOKEN_CHARS + 1)), "token"),
        (c.SignIn(resource="nobody asks", token="x"), "resource"),
    ],
)
async def test_bounds(host: Host, command: c.Command, field: str) -> None:
    with pytest.raises(PorticoError) as refused:
        await host.do(command, ADA)
    assert refused.value.field == field


@pytest.mark.parametrize("command", [c.SignIn(resource="r", token="secret"), c.AddToken(name="x")])
async def test_what_is_secret_leaves_no_receipt(host: Host, command: c.Command) -> None:
    """A command with an id is answered alike again, so its answer is stored: a token never is."""
    with pytest.raises(BadRequest, match="without an id"):
        await host.do(command, BOB.asking("k"))
