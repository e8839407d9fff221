"""The hosts that the sandboxed programs of a session connected to."""

from starlette.requests import Request

from portico.features.sandboxes.record import NetworkRecord
from portico.features.sandboxes.shapes import NetworkUse
from portico.kernel.commands import READS
from portico.server.app import App
from portico.server.read_forward import at_place
from portico.server.route import Table
from portico.server.routes import Routes


def table(app: App) -> Table:
    read = Routes(app)

    @read("/v1/sessions/{id}/network", READS["sessions"], "The hosts that it connected to, or tried to.", near=at_place)
    async def network(request: Request) -> NetworkUse:
        return await app.features[NetworkRecord].of((await read.session(request)).channel)

    return read.table
