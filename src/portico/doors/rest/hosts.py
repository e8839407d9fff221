"""The hosts on this log: who is there, and who is to go."""

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Route, Table, caller
from portico.host.members import Member


class HostList(Struct):
    hosts: list[Member]
    """Empty where a host is alone on its log."""


class GivenUp(Struct):
    sessions: int
    """That were ended as interrupted."""


def table(app: App) -> Table:
    async def hosts(request: Request) -> Response:
        found = await app.host.members.all()
        if not app.view(request).whole:  # how much the others do is not theirs to know
            found = [replace(each, sessions=0, running=0) for each in found]
        return JsonResponse(HostList(found))

    async def drain(request: Request) -> Response:
        name = request.path_params["name"]
        found = await app.host.members.drain(name)
        await app.host.audit("host.drained", caller(request).by, host=name)
        return JsonResponse(found)

    async def give_up(request: Request) -> Response:
        name = request.path_params["name"]
        ended = await app.host.members.give_up(name)
        await app.host.audit("host.given-up", caller(request).by, host=name, sessions=ended)
        return JsonResponse(GivenUp(ended))

    return [
        Route("/v1/hosts", hosts, "read", summary="The hosts on this log.", doc={"answer": HostList}),
        Route(
            "/v1/hosts/{name}/drain",
            drain,
            "admin",
            ("POST",),
            "Hand a host's sessions over: idle ones at once, busy ones after their turn.",
            doc={"answer": Member, "codes": ["not_found", "conflict"]},
        ),
        Route(
            "/v1/hosts/{name}/give-up",
            give_up,
            "admin",
            ("POST",),
            "End what a host had that never comes back.",
            doc={"answer": GivenUp, "codes": ["not_found", "conflict"]},
        ),
    ]
