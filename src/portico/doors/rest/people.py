"""People: who one is, one's own tokens, all people for admins; and what they have answered for longer than once."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.commands import OwnToken, PersonShown
from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Doc, Route, Table, caller
from portico.events import Grant
from portico.people.commands import own_tokens
from portico.people.identity import NamedToken
from portico.people.people import read_people
from portico.people.quotas import Quota, Quotas


class GrantList(Struct):
    grants: list[Grant]


class Me(Struct):
    person: str
    """Empty: the host's own token, to which ownership makes no difference."""
    scopes: list[str]
    admin: bool
    quotas: list[Quota]
    tokens: list[OwnToken]


class PersonList(Struct):
    people: list[PersonShown]


def table(app: App) -> Table:
    quotas = app.host.part(Quotas)

    async def grants(request: Request) -> Response:
        return JsonResponse(GrantList(list(app.view(request).grants())))

    def shown(token: NamedToken) -> OwnToken:
        used = app.gate.tokens.used.get(token.id, 0)
        return OwnToken(token.name, token.scopes, token.created, token.expires, used, token.login)

    async def me(request: Request) -> Response:
        who = caller(request)
        await quotas.sweep()
        having = quotas.of(who.person) if who.person else []
        tokens = [shown(each) for each in own_tokens(app.home, who)]
        return JsonResponse(Me(who.person, sorted(who.scopes), "admin" in who.scopes, having, tokens))

    async def listing(request: Request) -> Response:
        await quotas.sweep()
        people = read_people(app.home)
        found = [PersonShown(p.name, p.scopes, p.created, p.issuer, quotas.of(p.name)) for p in people]
        return JsonResponse(PersonList(found))

    doc: Doc = {"answer": GrantList}
    return [
        Route("/v1/grants", grants, "read", summary="Remembered answers that are still valid.", doc=doc),
        Route("/v1/people/me", me, "any", summary="Who you are, your tokens and your quotas.", doc={"answer": Me}),
        Route("/v1/people", listing, "admin", summary="All people.", doc={"answer": PersonList}),
    ]
