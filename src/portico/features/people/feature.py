"""The feature `people`: adds, removes and erases people, makes and revokes tokens, and audits all of it."""

import time

from portico.features.people import sharing  # noqa: F401  # sets the rules of sharing
from portico.features.people.commands import (
    AddOwnToken,
    AddPerson,
    AddToken,
    ErasePerson,
    OwnTokenMade,
    PersonShown,
    RemovePerson,
    RetentionDone,
    RevokeOwnToken,
    RevokeToken,
    ShareSession,
    TokenMade,
    UnshareSession,
)
from portico.features.people.people import add_person, check_scopes, read_people
from portico.features.people.quotas import Quotas
from portico.features.people.retention import DAY_MS, Retention
from portico.kernel import commands as c
from portico.kernel.commands import Caller
from portico.kernel.errors import BadRequest, Forbidden, NotFound
from portico.kernel.feature import Feature, handle
from portico.kernel.host import Host
from portico.server.home import Home
from portico.server.identity import (
    NamedToken,
    effective_tokens,
    new_token,
    read_tokens,
    remove_person,
    revoke_token,
)
from portico.server.settings import PeopleSettings


def own_tokens(home: Home, who: Caller) -> list[NamedToken]:
    mine = [each for each in effective_tokens(home) if each.person == who.person]
    return [each for each in mine if who.person and not each.expired]


def _tools(made: NamedToken) -> dict[str, list[str]]:
    return {"tools": made.tools} if made.tools else {}


class PeopleFeature(Feature):
    name = "people"
    needs = (Quotas, Retention, Home)
    commands = (
        *(AddPerson, RemovePerson, ErasePerson),
        *(AddToken, RevokeToken, AddOwnToken, RevokeOwnToken),
        *(ShareSession, UnshareSession),
    )
    settings = PeopleSettings

    def __init__(self, host: Host, quotas: Quotas, retention: Retention, home: Home) -> None:
        super().__init__(host)
        self._host = host
        self._quotas = quotas
        self._retention = retention
        self._home = home
        self._settings = PeopleSettings()

    def configure(self, settings: PeopleSettings) -> None:
        self._settings = settings

    @handle
    async def _add(self, command: AddPerson, caller: Caller) -> PersonShown:
        settings = self._settings
        made = add_person(self._home, command.name, command.scopes or settings.scopes, settings.admins)
        await self._host.audit("person.added", caller.by, person=made.name, scopes=made.scopes)
        return PersonShown(made.name, made.scopes, made.created, "", self._quotas.of(made.name))

    @handle
    async def _remove(self, command: RemovePerson, caller: Caller) -> c.Done:
        remove_person(self._home, command.name)
        await self._host.audit("person.removed", caller.by, person=command.name)
        return c.Done()

    @handle
    async def _erase(self, command: ErasePerson, caller: Caller) -> RetentionDone:
        """Also the data of a person who was removed before: then only their sessions show that they existed."""
        planned = self._retention.of_person(command.name)
        if not planned and all(each.name != command.name for each in read_people(self._home)):
            raise NotFound("person", command.name, "No session belongs to that name, so there is nothing to erase.")
        return await self._retention.answer(planned, command.dry_run, caller, running=True)

    @handle
    async def _add_token(self, command: AddToken, caller: Caller) -> TokenMade:
        scopes = check_scopes(["read"] if command.scopes is None else command.scopes)
        token = new_token(self._home, command.name, scopes, days=command.days, tools=command.tools)
        made = next(each for each in read_tokens(self._home) if (each.name, each.person) == (command.name, ""))
        await self._host.audit("token.made", caller.by, name=made.name, scopes=made.scopes, **_tools(made))
        return TokenMade(made.name, made.scopes, made.created, token, made.expires, made.tools)

    @handle
    async def _revoke_token(self, command: RevokeToken, caller: Caller) -> c.Done:
        revoke_token(self._home, command.token)
        await self._host.audit("token.revoked", caller.by, name=command.token)
        return c.Done()

    @handle
    async def _add_own_token(self, command: AddOwnToken, caller: Caller) -> OwnTokenMade:
        if not caller.person:
            raise BadRequest("This token belongs to no person; `portico token` manages the host's own.")
        scopes = ["read"] if command.scopes is None else command.scopes
        if not scopes or not caller.scopes.issuperset(scopes):
            raise Forbidden(f"Choose from your own scopes: {', '.join(sorted(caller.scopes))}.", field="scopes")
        self._check_end(caller, command.days)
        tools = command.tools
        token = new_token(self._home, command.name, scopes, caller.person, days=command.days, tools=tools)
        made = next(each for each in own_tokens(self._home, caller) if each.name == command.name)
        more = {"person": caller.person, **_tools(made)}
        await self._host.audit("token.made", caller.by, name=made.name, scopes=made.scopes, **more)
        return OwnTokenMade(made.name, made.scopes, made.created, made.expires, tools=made.tools, token=token)

    def _check_end(self, who: Caller, days: float | None) -> None:
        """A token that ends by itself makes none that goes on; a login may: its person has proved who they are."""
        asking = next((each for each in own_tokens(self._home, who) if each.id == who.id), None)
        if asking is None or asking.login or not asking.expires:
            return
        left = (asking.expires - time.time() * 1000) / DAY_MS
        if days is None or days > left:
            words = f"The token {who.name!r} ends in {left:.1f} days: what it makes ends before. Or log in."
            raise Forbidden(words, field="days")

    @handle
    async def _revoke_own_token(self, command: RevokeOwnToken, caller: Caller) -> c.Done:
        name = command.name
        if not caller.person:
            raise NotFound("token", name, "Yours belongs to no person; `portico token` manages the host's own.")
        named = [each for each in own_tokens(self._home, caller) if each.name == name]
        if not caller.scopes.issuperset(scope for each in named for scope in each.scopes):
            raise Forbidden(f"The token {name!r} may do more than this one: log in, or end it with itself.")
        revoke_token(self._home, name, caller.person)
        await self._host.audit("token.revoked", caller.by, name=name, person=caller.person)
        return c.Done()
