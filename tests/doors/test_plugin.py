"""A stranger's package brings a door through the entry point, as docs/guide/writing-a-door.md says."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from portico.kernel.errors import BadRequest
from portico.server.home import Home
from portico.server.registry import OWN, find_points
from portico.server.router import Router
from tests.doors.standing import Standing, standing
from tests.process import inside

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "writing-a-door.md"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, points: dict[str, str]) -> None:
    """What an installer leaves: the module on the path, and the metadata that names its entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{door} = {to}\n" for door, to in points.items())
    (info / "entry_points.txt").write_text(f"[portico.doors]\n{lines}")
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


def block(language: str) -> str:
    return GUIDE.read_text().partition(f"```{language}\n")[2].partition("```")[0]


async def shown(here: Standing) -> dict[str, str]:
    return {each["name"]: each["missing"] for each in (await here.http.get("/v1")).json()["doors"]}


async def test_the_door_of_the_guide_is_found_and_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads(block("toml"))["project"]
    install(tmp_path / "site", monkeypatch, "portico_text", block("python"), project["entry-points"]["portico.doors"])
    async with standing(tmp_path, agents=("scripted",)) as here:
        first = await here.http.post("/text", content="[[say:good day]]")
        assert (first.status_code, first.text.startswith("good day")) == (200, True), first.text
        again = await here.http.post("/text", params={"session": first.headers["x-session"]}, content="[[say:again]]")
        assert again.text.startswith("again")
        assert (await here.http.get("/text/turns")).text == "2\n"
        assert (await here.stranger.post("/text", content="hello")).status_code == 401
        assert (await shown(here))["text"] == ""
        assert "/text/turns" in (await here.http.get("/openapi.json")).json()["paths"]
        watching = here.server.doors["text"].watching  # type: ignore[attr-defined]
    assert watching.done()


HEAD = "from portico.server.door import Door\nfrom portico.server.route import Route\n"
TAKEN = """
class Made(Door):
    def __init__(self, app):
        super().__init__(app)
        self.routes = [Route({path!r}, self.get, "open")]
    async def get(self, request): raise RuntimeError("never")
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("Made = 1", "TypeError"),
        ("def Made(app): raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("def Made(app): return []", "is not a portico.server.door.Door"),
        ("def other(app): return []", "AttributeError"),
        ("def Made(app: return []", "SyntaxError"),
        (HEAD + "class Made(Door):\n    async def open(self): raise OSError('no port')", "OSError: no port"),
        (HEAD + TAKEN.format(path="/v1/sessions/{id}"), "served by another door ('/v1/sessions/{id}')"),
        (HEAD + TAKEN.format(path="/api/mine"), "served by another door ('/api/{rest:path}')"),
        (HEAD + TAKEN.format(path="/{name}"), "served by another door ('/{name:path}')"),
        (HEAD + "class Made(Door):\n    def __init__(self, app): self.routes = ['x']", "AttributeError"),
    ],
)
async def test_a_door_that_cannot_be_opened_is_told_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str, words: str
) -> None:
    install(tmp_path / "site", monkeypatch, "aaa_broken", code, {"aaa": "aaa_broken:Made"})
    async with standing(tmp_path, agents=("scripted",)) as here:
        missing = (await shown(here))["aaa"]
        assert "'aaa_broken'" in missing
        assert words in missing
        assert words in caplog.text
        assert (await here.http.get("/v1/sessions")).json()["sessions"] == []


def test_a_plugin_does_not_take_a_name_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path / "site", monkeypatch, "aaa_broken", "import no_such_module", {"rest": "aaa_broken:Made"})
    assert find_points()["rest"].value == "portico.doors.rest:RestDoor"
    assert "aaa_broken:Made is left out" in caplog.text


def test_our_own_doors_are_entry_points_of_the_package() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["portico.doors"]
    assert points == {name: find_points()[name].value for name in OWN}


async def test_no_two_of_our_own_routes_want_the_same_requests(tmp_path: Path) -> None:
    """The start looks at plugins only: among ours the first would get the requests of the second, silently."""
    async with standing(tmp_path) as here:
        router = Router()
        for route in here.server.gate.table:
            assert router.taken(route) is None, route.path
            router.add(route)


async def test_a_disabled_door_is_not_served(tmp_path: Path) -> None:
    async with standing(tmp_path, flags={"doors.disabled": ["anywhere", "mcp"]}) as here:
        assert (await here.http.post("/mcp", json={})).status_code == 404
        assert (await here.http.get("/events")).status_code == 404
        about = (await here.http.get("/v1")).json()["doors"]
        assert {each["name"] for each in about if each["disabled"]} == {"anywhere", "mcp"}


async def test_a_disabled_door_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="Did you mean 'anywhere'") as raised:
        async with standing(tmp_path, flags={"doors.disabled": ["anywere"]}):
            pass
    assert raised.value.field == "doors.disabled"
    assert not Home(tmp_path / "home").endpoint()


def test_doctor_names_a_door_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", monkeypatch, "aaa_broken", "import no_such_module", {"aaa": "aaa_broken:Made"})
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text('[doors]\ndisabled = ["mcp"]\n')
    done = inside(home, "doctor", "--json", PATH="/usr/bin:/bin")
    found = {each["what"]: (each["ok"], each["detail"]) for each in json.loads(done.stdout)}
    assert found["doors"] == (True, "ahp, anywhere, automations, jobs, openapi, ops, portal, rest, web (disabled: mcp)")
    assert found["door aaa"][0] is False
    assert "No module named 'no_such_module'" in found["door aaa"][1]
    assert done.returncode == 1
