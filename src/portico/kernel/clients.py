"""Ownership of the ids of clients.

The attack: a token that may drive finishes a call that another person's editor runs, with a forged result, or makes
that editor leave. So an id belongs to the token that used it first, and commands cannot use the id of another token.
"""

from typing import TYPE_CHECKING

import msgspec

from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.errors import BadRequest, Forbidden
from portico.kernel.events import HOST

if TYPE_CHECKING:
    from portico.kernel.host import Host

CLIENT = "ahp.client/"
"""Key prefix of editor clients in the host's channel. Named after the first protocol that had them."""


async def identify(host: "Host", command: c.IdentifyClient, caller: c.Caller) -> c.Done:
    key = CLIENT + command.client
    if len(command.client) > limits.CLIENT_ID_CHARS:
        raise BadRequest(f"A client's id has at most {limits.CLIENT_ID_CHARS} characters.", field="client")
    stored = msgspec.json.encode({**command.value, "caller": caller.id})
    if host.commands.clients.get(key) == stored and not host.members.several:  # only the day of its last use is new
        host.log.put_kv(HOST, key, stored, lazy=True)
        return c.Done()
    async with host.shared.lock:
        data = await host.log.get_kv(HOST, key)
        if data is not None and msgspec.json.decode(data).get("caller") != caller.id:
            raise Forbidden("This client's id belongs to somebody else.", field="client")
        if data is None or command.value:
            host.log.put_kv(HOST, key, stored)
            await host.log.flush()
            host.commands.clients[key] = stored
    return c.Done()


async def check_client(host: "Host", client: str, caller: c.Caller, *, takes: bool = False) -> None:
    """Refuse the id of a client that belongs to another token, so that no other token joins, answers or leaves as that
    client. `takes`: an unused id becomes the caller's."""
    if not caller.outside or caller.client == client:
        return
    if takes:
        await identify(host, c.IdentifyClient(client=client), caller)
        return
    data = await host.log.get_kv(HOST, CLIENT + client)
    if data is not None and msgspec.json.decode(data).get("caller") != caller.id:
        raise Forbidden("This client's id belongs to somebody else.", field="client")
