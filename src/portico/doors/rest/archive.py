"""Sessions that leave for another host, and those that come from one."""

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import commands as c
from portico import limits
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.route import Route, Table, caller
from portico.host.state import Summary
from portico.transcripts.archive import Archive, export_archive


class ImportBody(Struct, forbid_unknown_fields=True):
    archive: Archive
    agent: str | None = None
    cwd: str | None = None


def table(app: App) -> Table:
    async def exported(request: Request) -> Response:
        return JsonResponse(await export_archive(app.host, await app.view(request).get(request.path_params["id"])))

    async def imported(request: Request) -> Response:
        body = await read_as(request, ImportBody)
        command = c.ImportSession(archive=msgspec.to_builtins(body.archive), agent=body.agent, cwd=body.cwd)
        return JsonResponse(await app.host.do(command, caller(request)), 201)

    return [
        Route(
            "/v1/sessions/{id}/archive",
            exported,
            "read",
            summary="The session with its blobs, for another host.",
            doc={"answer": Archive},
        ),
        Route(
            "/v1/sessions/import",
            imported,
            "admin",
            ("POST",),
            "A session of another host.",
            max_body=limits.ARCHIVE_BYTES,
            doc={"body": ImportBody, "answer": Summary, "status": 201},
        ),
    ]
