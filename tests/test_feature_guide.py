"""Another package brings a feature through the entry point, as docs/guide/writing-a-feature.md describes."""

import asyncio
import logging
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.doors.rest.events import event_page
from portico.features.automations.automations import Automations
from portico.features.registry import GROUP, installed_features
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import fold
from portico.kernel.commands import table
from portico.kernel.events import record
from portico.kernel.feature import Feature
from portico.server.compose import ROOMS
from portico.server.feature_pages import RESERVED
from portico.server.home import Home
from tests.doors.standing import Standing, standing

ROOT = Path(__file__).parents[1]
POINT = "portico_bookmarks:Bookmarks"
GUIDE = ROOT / "docs" / "guide" / "writing-a-feature.md"


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """Other tests see the tables as they were."""
    yield
    forget_tables()


_COMMANDS, _EVENTS, _SLICES = dict(c.COMMANDS), dict(record._registered), dict(fold._SLICES)


def forget_tables() -> None:
    """As in a process without the package."""
    c.COMMANDS.clear()
    c.COMMANDS.update(_COMMANDS)
    table._decoder.cache_clear()
    table.answer_types.cache_clear()
    record._registered.clear()
    e.register_events(*_EVENTS)
    event_page.cache_clear()
    fold._SLICES.clear()
    fold._SLICES.update(_SLICES)


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, point: str = "portico_bookmarks:Bookmarks"
) -> None:
    """What an installer leaves: the module on the path, and the metadata that names its entry points."""
    info = folder / "portico_bookmarks-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: portico-bookmarks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nbookmarks = {point}\n")
    package = folder / "portico_bookmarks"
    package.mkdir()
    (package / "__init__.py").write_text(code)
    (package / "verbs.py").write_text(block("python", 2))
    (package / "pages").mkdir()
    (package / "pages" / "bookmarks.js").write_text(block("js"))
    monkeypatch.syspath_prepend(str(folder))
    for name in ("portico_bookmarks", "portico_bookmarks.verbs"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def portico(here: Standing, *arguments: str) -> str:
    """Run the command line in another process, as a user does."""
    site = next(path for path in sys.path if Path(path, "portico_bookmarks").exists())
    environment = {**os.environ, "PYTHONPATH": site, "PORTICO_HOME": str(here.server.home.path)}
    command = [sys.executable, "-m", "portico", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(language: str, number: int = 1) -> str:
    return GUIDE.read_text().split(f"```{language}\n")[number].partition("```")[0]


async def kept(here: Standing) -> dict[str, str]:
    found = (await here.http.get("/v1/bookmarks")).json()["bookmarks"]
    return {session: each["note"] for session, each in found.items()}


async def test_the_feature_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = tomllib.loads(block("toml"))["project"]["entry-points"][GROUP]
    install(tmp_path / "site", monkeypatch, block("python"), points["bookmarks"])
    home = Home(tmp_path / "home")
    home.make()
    home.settings_path.write_text("[features.bookmarks]\nmost = 1\n")
    async with standing(tmp_path) as here:
        first, second = await here.start(), await here.start()
        added = await here.http.post(f"/v1/sessions/{first}/bookmark", json={"note": "look here"})
        assert (added.status_code, await kept(here)) == (201, {first: "look here"})
        assert (await here.http.post(f"/v1/sessions/{second}/bookmark", json={"note": "x"})).status_code == 409
        wrong = await here.http.post(f"/v1/sessions/{first}/bookmark", json={"text": "x"})
        assert (wrong.status_code, wrong.json()["field"]) == (400, "text")
        stranger = await here.stranger.post(f"/v1/sessions/{first}/bookmark", json={"note": "x"})
        assert stranger.status_code == 401
        paths = (await here.http.get("/openapi.json")).json()["paths"]
        assert {"/v1/sessions/{id}/bookmark", "/v1/bookmarks"} <= paths.keys()
        (shown,) = [each for each in (await here.http.get("/v1/sessions")).json()["sessions"] if each["id"] == first]
        assert shown["features"]["bookmarks"]["note"] == "look here"
        assert (await asyncio.to_thread(portico, here, "bookmarks")).split() == [first, "look", "here"]
        removed = await asyncio.to_thread(portico, here, "do", "bookmark.remove", f"session={first}")
        assert (removed, await kept(here)) == ("{}\n", {})
        (page,) = (await here.http.get("/v1/pages")).json()["pages"]
        assert page == {
            "name": "bookmarks",
            "title": "Bookmarks",
            "icon": "pin",
            "module": "pages/bookmarks/bookmarks.js",
        }
        module = await here.stranger.get(f"/{page['module']}")
        assert (module.text, module.headers["content-type"]) == (block("js"), "text/javascript; charset=utf-8")
        assert "script-src 'self'" in module.headers["content-security-policy"]
        await here.http.post(f"/v1/sessions/{first}/bookmark", json={"note": "look here"})
    async with standing(tmp_path) as here:  # after a restart
        assert await kept(here) == {first: "look here"}
        assert (await here.http.delete(f"/v1/sessions/{first}/bookmark")).status_code == 204
        assert (await here.http.delete(f"/v1/sessions/{first}/bookmark")).status_code == 404
        assert await kept(here) == {}


async def test_without_the_package_its_events_are_kept_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as installed:
        install(tmp_path / "site", installed, block("python"))
        async with standing(tmp_path) as here:
            session = await here.start()
            added = await here.http.post(f"/v1/sessions/{session}/bookmark", json={"note": "n"})
            assert added.status_code == 201
    forget_tables()
    async with standing(tmp_path) as here:
        loaded = await here.server.host.get(session)
        found = [each.event for each in await here.server.host.log.read(loaded.channel)]
        assert [each.raw for each in found if isinstance(each, e.Unknown)] == [
            {"type": "bookmark.set", "by": "token:owner", "note": "n"}
        ]
        loaded._snapshot_pos = -1000  # a host without the feature stores its state
        loaded._keep_snapshot()
        await here.server.host.log.flush()
    install(tmp_path / "again", monkeypatch, block("python"))
    async with standing(tmp_path) as here:
        assert (await here.server.host.get(session)).state.features["bookmarks"].note == "n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("Bookmarks = 7", "is no Feature"),
        ("from portico.kernel.feature import Feature\nclass Bookmarks(Feature):\n    name = 'other'", "is no Feature"),
        (
            "from portico.kernel.commands import Command\nfrom portico.kernel.feature import Feature\n"
            "class Bare(Command, frozen=True, tag='bare'):\n    '''No lock.'''\n    scope = 'read'\n"
            "class Bookmarks(Feature):\n    name = 'bookmarks'\n    commands = (Bare,)",
            "Bare needs a lock",
        ),
    ],
)
def test_a_feature_that_cannot_be_loaded_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str, words: str
) -> None:
    install(tmp_path / "site", monkeypatch, code)
    with caplog.at_level(logging.ERROR, "portico.features"):
        assert installed_features() == []
    assert "bookmarks is left out" in caplog.text
    assert words in caplog.text


async def test_a_feature_that_cannot_be_built_does_not_stop_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "from portico.kernel.feature import Feature\nclass Bookmarks(Feature):\n    name = 'bookmarks'\n"
    install(tmp_path / "site", monkeypatch, code + "    def __init__(self, host): raise RuntimeError('no')\n")
    async with standing(tmp_path) as here:
        assert (await here.http.get("/healthz")).json() == {"ok": True}


PAGE = """
from portico.kernel.feature import Feature, WorkbenchPage

class Bookmarks(Feature):
    name = "bookmarks"
    pages = {"good": WorkbenchPage("Good", "pages/bookmarks.js"), %s}
"""


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ('"inbox": WorkbenchPage("Mine", "pages/bookmarks.js")', "The workbench has a page of this name"),
        ('"s": WorkbenchPage("Mine", "pages/bookmarks.js")', "The workbench has a page of this name"),
        ('"../up": WorkbenchPage("Mine", "pages/bookmarks.js")', "lower-case letters"),
        ('"Upper": WorkbenchPage("Mine", "pages/bookmarks.js")', "lower-case letters"),
        ('"": WorkbenchPage("Mine", "pages/bookmarks.js")', "lower-case letters"),
        ('"mine": WorkbenchPage(" ", "pages/bookmarks.js")', "title is empty"),
        ('"mine": WorkbenchPage("Mine", "pages/missing.js")', "There is no JavaScript module"),
        ('"mine": WorkbenchPage("Mine", "verbs.py")', "There is no JavaScript module"),
        ('"mine": WorkbenchPage("Mine", "root.js")', "in a folder inside the package"),
        ('"mine": WorkbenchPage("Mine", "../outside/page.js")', "in a folder inside the package"),
    ],
)
async def test_a_page_that_cannot_be_served_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, declared: str, words: str
) -> None:
    install(tmp_path / "site", monkeypatch, PAGE % declared)
    (tmp_path / "site" / "outside").mkdir()
    for file in ("outside/page.js", "portico_bookmarks/root.js"):
        (tmp_path / "site" / file).write_text("")
    async with standing(tmp_path) as here:
        assert [each["name"] for each in (await here.http.get("/v1/pages")).json()["pages"]] == ["good"]
    assert words in caplog.text


@pytest.mark.parametrize(
    "path",
    [
        "good/missing.js",
        "good/",
        "good/..%2f__init__.py",
        "good/%2e%2e/verbs.py",
        "good//etc/passwd",
        "good/a%00b",
        "good/link.js",
        "missing/bookmarks.js",
        "bookmarks.js",
    ],
)
async def test_only_files_of_the_page_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    install(tmp_path / "site", monkeypatch, PAGE % "")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "site/portico_bookmarks/pages/link.js").symlink_to(tmp_path / "secret")
    async with standing(tmp_path) as here:
        assert (await here.stranger.get("/pages/good/bookmarks.js")).status_code == 200
        answer = await here.stranger.get(f"/pages/{path}")
        assert (answer.status_code, answer.text) == (404, "Not Found")
        assert (await here.stranger.get("/v1/pages")).status_code == 401


def test_names_of_the_workbench_are_reserved() -> None:
    """Otherwise a feature could replace a built-in page."""
    places = (ROOT / "web" / "src" / "app" / "places.ts").read_text()
    router = (ROOT / "web" / "src" / "app" / "router.ts").read_text()
    table = places.partition("const BUILT_IN")[2].partition("};")[0]
    names = re.findall(r"^  (\w+): \{", table, re.MULTILINE) + re.findall(r'case "(\w+)":', router)
    assert set(names) - {"home", "page", "unknown"} == RESERVED


def test_our_features_are_in_the_group() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ours: tuple[type[Feature], ...] = (*ROOMS, Automations)
    assert project["entry-points"][GROUP] == {each.name: f"{each.__module__}:{each.__qualname__}" for each in ours}
