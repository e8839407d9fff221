"""The hosts on this log: who is there."""

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.route import Route, Table
from portico.host.members import Member


class HostList(Struct):
    hosts: list[Member]
    """Empty where a host is alone on its log."""


def table(app: App) -> Table:
    async def hosts(request: Request) -> Response:
        found = await app.host.members.all()
        if not app.view(request).may("metrics"):  # how much the others do is not theirs to know
            found = [replace(each, sessions=0, running=0) for each in found]
        return JsonResponse(HostList(found))

    return [Route("/v1/hosts", hosts, "read", summary="The hosts on this log.", doc={"answer": HostList})]
