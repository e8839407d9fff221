"""Tokens as commands: made, ended, and on record."""

from portico import commands as c
from portico.commands import SCOPES, Caller
from portico.doors.identity import new_token, read_tokens, revoke_token
from portico.errors import BadRequest
from portico.home import Home
from portico.host.host import Host


def install_tokens(host: Host, home: Home) -> None:
    async def add(command: c.AddToken, caller: Caller) -> c.TokenMade:
        scopes = ["read"] if command.scopes is None else command.scopes
        if not scopes:
            raise BadRequest(f"Choose at least one scope of {', '.join(SCOPES)}.", field="scopes")
        token = new_token(home, command.name, scopes, days=command.days)
        made = next(each for each in read_tokens(home) if (each.name, each.person) == (command.name, ""))
        await host.audit("token.made", caller.by, name=made.name, scopes=made.scopes)
        return c.TokenMade(made.name, made.scopes, made.created, token, made.expires)

    async def revoke(command: c.RevokeToken, caller: Caller) -> c.Done:
        revoke_token(home, command.token)
        await host.audit("token.revoked", caller.by, name=command.token)
        return c.Done()

    host.commands.handle(c.AddToken, add)
    host.commands.handle(c.RevokeToken, revoke)
