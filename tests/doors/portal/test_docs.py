"""docs/reference/portal.md names every route with its scope, and every error code."""

import re
from pathlib import Path

from portico.server.gate import Gate
from portico.server.route import Route
from tests.doors.portal.conftest import Opener

PAGE = (Path(__file__).parents[3] / "docs/reference/portal.md").read_text("utf-8")


async def test_every_route_is_documented_with_its_scope(open_portal: Opener) -> None:
    await open_portal()
    gate: Gate = open_portal.gates[-1]
    offered = set()
    for route in gate.table:
        assert isinstance(route, Route)
        own = route.path.startswith("/api/")
        names = [route.path] if own else [f"{method} {route.path}" for method in route.methods]
        offered |= {(name, route.scope) for name in names}
    assert set(re.findall(r"^\| `([^`]+)` \| (\w+) \|", PAGE, re.MULTILINE)) == offered


async def test_every_error_is_documented(open_portal: Opener) -> None:
    await open_portal()
    for route in open_portal.gates[-1].table:
        assert isinstance(route, Route)
        for code in route.doc.get("errors", []):
            assert f"`{code}`" in PAGE, code
