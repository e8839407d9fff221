"""The hosts that the sandboxed programs of a session connected to."""

from starlette.requests import Request

from portico.commands import READS
from portico.doors.app import App
from portico.doors.read_forward import at_place
from portico.doors.route import Table
from portico.doors.routes import Routes
from portico.sandboxes.record import NetworkRecord
from portico.sandboxes.shapes import NetworkUse


def table(app: App) -> Table:
    read = Routes(app)

    @read("/v1/sessions/{id}/network", READS["sessions"], "The hosts that it connected to, or tried to.", near=at_place)
    async def network(request: Request) -> NetworkUse:
        return await app.features[NetworkRecord].of((await read.session(request)).channel)

    return read.table
