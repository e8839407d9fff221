"""People: who one is, one's own tokens, all people for admins; and what they have answered for longer than once."""

import time

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.identity import NamedToken, new_token, read_tokens, remove_person, revoke_token
from portico.doors.people import add_person, read_people
from portico.doors.route import Caller, Doc, Route, Table, caller
from portico.errors import BadRequest, Forbidden, NotFound
from portico.events import Grant
from portico.people.quotas import Quota, Quotas
from portico.people.retention import DAY_MS


class GrantList(Struct):
    grants: list[Grant]


class OwnToken(Struct, omit_defaults=True):
    name: str
    scopes: list[str]
    created: int
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""
    used: int = 0
    """When it was last seen, to the minute; 0: not yet."""
    login: bool = False
    """A browser's."""


class OwnTokenMade(OwnToken, kw_only=True):
    token: str
    """This is the only time it can be seen."""


class Me(Struct):
    person: str
    """Empty: the host's own token, to which ownership makes no difference."""
    scopes: list[str]
    admin: bool
    quotas: list[Quota]
    tokens: list[OwnToken]


class OwnTokenBody(Struct, forbid_unknown_fields=True):
    name: str
    scopes: list[str] = field(default_factory=lambda: ["read"])
    days: float | None = None
    """How long it lasts; absent: for ever."""


class PersonBody(Struct, forbid_unknown_fields=True):
    name: str
    scopes: list[str] = field(default_factory=list)
    """Those of `people.scopes`, when none are named."""


class PersonShown(Struct):
    name: str
    scopes: list[str]
    created: int
    login: str
    """Where they log in: a provider, `proxy`, or nothing yet."""
    quotas: list[Quota]


class PersonList(Struct):
    people: list[PersonShown]


def table(app: App) -> Table:
    quotas = app.host.part(Quotas)

    async def grants(request: Request) -> Response:
        return JsonResponse(GrantList(list(app.view(request).grants())))

    def shown(token: NamedToken) -> OwnToken:
        used = app.gate.tokens.used.get(token.id, 0)
        return OwnToken(token.name, token.scopes, token.created, token.expires, used, token.login)

    def own(who: Caller) -> list[NamedToken]:
        mine = [each for each in read_tokens(app.home) if each.person == who.person]
        return [each for each in mine if who.person and not each.expired]

    async def me(request: Request) -> Response:
        who = caller(request)
        await quotas.sweep()
        having = quotas.of(who.person) if who.person else []
        tokens = [shown(each) for each in own(who)]
        return JsonResponse(Me(who.person, sorted(who.scopes), "admin" in who.scopes, having, tokens))

    def check_end(who: Caller, days: float | None) -> None:
        """A token that ends by itself makes none that goes on; a login may: its person has proved who they are."""
        asking = next((each for each in own(who) if each.id == who.id), None)
        if asking is None or asking.login or not asking.expires:
            return
        left = (asking.expires - time.time() * 1000) / DAY_MS
        if days is None or days > left:
            words = f"The token {who.name!r} ends in {left:.1f} days: what it makes ends before. Or log in."
            raise Forbidden(words, field="days")

    async def make_own(request: Request) -> Response:
        body, who = await read_as(request, OwnTokenBody), caller(request)
        if not who.person:
            raise BadRequest("This token belongs to no person; `portico token` manages the host's own.")
        beyond = [scope for scope in body.scopes if scope not in who.scopes]
        if beyond or not body.scopes:
            raise Forbidden(f"Choose from your own scopes: {', '.join(sorted(who.scopes))}.", field="scopes")
        check_end(who, body.days)
        token = new_token(app.home, body.name, body.scopes, person=who.person, days=body.days)
        made = next(each for each in own(who) if each.name == body.name)
        return JsonResponse(OwnTokenMade(made.name, made.scopes, made.created, made.expires, token=token), 201)

    async def revoke_own(request: Request) -> Response:
        name, who = request.path_params["name"], caller(request)
        if not who.person:
            raise NotFound("token", name, "Yours belongs to no person; `portico token` manages the host's own.")
        beyond = {scope for each in own(who) if each.name == name for scope in each.scopes} - who.scopes
        if beyond:
            raise Forbidden(f"The token {name!r} may do more than this one: log in, or end it with itself.")
        revoke_token(app.home, name, who.person)
        return Response(status_code=204)

    async def listing(request: Request) -> Response:
        await quotas.sweep()
        people = read_people(app.home)
        found = [PersonShown(p.name, p.scopes, p.created, p.issuer, quotas.of(p.name)) for p in people]
        return JsonResponse(PersonList(found))

    async def add(request: Request) -> Response:
        body = await read_as(request, PersonBody)
        made = add_person(app.home, body.name, body.scopes or app.settings.people.scopes)
        await app.host.audit("person.added", caller(request).by, person=made.name, scopes=made.scopes)
        shown = PersonShown(made.name, made.scopes, made.created, "", quotas.of(made.name))
        return JsonResponse(shown, 201)

    async def remove(request: Request) -> Response:
        name = request.path_params["name"]
        remove_person(app.home, name)
        await app.host.audit("person.removed", caller(request).by, person=name)
        return Response(status_code=204)

    doc: Doc = {"answer": GrantList}
    own_made: Doc = {"body": OwnTokenBody, "answer": OwnTokenMade, "status": 201, "codes": ["conflict"]}
    added: Doc = {"body": PersonBody, "answer": PersonShown, "status": 201, "codes": ["conflict"]}
    gone: Doc = {"others": {204: None}}
    one = "/v1/people/me/tokens"
    return [
        Route("/v1/grants", grants, "read", summary="Remembered answers that are still valid.", doc=doc),
        Route("/v1/people/me", me, "any", summary="Who you are, your tokens and your quotas.", doc={"answer": Me}),
        Route(one, make_own, "any", ("POST",), "Make a token of your own.", doc=own_made),
        Route(f"{one}/{{name}}", revoke_own, "any", ("DELETE",), "End one of your tokens.", doc=gone),
        Route("/v1/people", listing, "admin", summary="All people.", doc={"answer": PersonList}),
        Route("/v1/people", add, "admin", ("POST",), "Add a person.", doc=added),
        Route("/v1/people/{name}", remove, "admin", ("DELETE",), "Remove a person; their tokens end.", doc=gone),
    ]
