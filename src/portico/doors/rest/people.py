"""People: who one is, one's own tokens, all people for admins; and what they have answered for longer than once."""

from msgspec import Struct
from starlette.requests import Request

from portico.features.people.commands import OwnToken, PersonShown
from portico.features.people.feature import own_tokens
from portico.features.people.people import read_people
from portico.features.people.quotas import Quota, Quotas
from portico.kernel.events import Grant
from portico.server.app import App
from portico.server.identity import NamedToken
from portico.server.route import Table, caller
from portico.server.routes import Routes


class GrantList(Struct):
    grants: list[Grant]


class Me(Struct):
    person: str
    """Empty: the token of the host itself, which ignores ownership."""
    scopes: list[str]
    admin: bool
    quotas: list[Quota]
    tokens: list[OwnToken]


class PersonList(Struct):
    people: list[PersonShown]


def table(app: App) -> Table:
    quotas, read = app.features[Quotas], Routes(app)

    @read("/v1/grants", "read", "Remembered answers that are still valid.")
    async def grants(request: Request) -> GrantList:
        return GrantList(list(app.view(request).grants()))

    def shown(token: NamedToken) -> OwnToken:
        used = app.gate.tokens.used.get(token.id, 0)
        return OwnToken(token.name, token.scopes, token.created, token.expires, used, token.login, token.tools)

    @read("/v1/people/me", "any", "Who you are, your tokens and your quotas.")
    async def me(request: Request) -> Me:
        who = caller(request)
        await quotas.sweep()
        having = quotas.of(who.person) if who.person else []
        tokens = [shown(each) for each in own_tokens(app.home, who)]
        return Me(who.person, sorted(who.scopes), "admin" in who.scopes, having, tokens)

    @read("/v1/people", "admin", "All people.")
    async def listing(request: Request) -> PersonList:
        await quotas.sweep()
        people = read_people(app.home)
        return PersonList([PersonShown(p.name, p.scopes, p.created, p.issuer, quotas.of(p.name)) for p in people])

    return read.table
