"""Documents are tested: every route, setting, error code and verb is in its page, and says what is true."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tools.reference import served

from portico.kernel.errors import KINDS
from portico.server.route import SCOPES
from portico.server.settings_load import keys
from tests.cli.test_help import commands
from tests.doors.standing import Standing, standing

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def rows(name: str) -> list[list[str]]:
    """The cells of every row of every table, without their quotes."""
    lines = [line for line in page(name).splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_setting_is_documented_with_its_default() -> None:
    found = {row[0].strip("`"): row[1] for row in rows("reference/settings.md") if row[0].startswith("`")}
    assert found == {key: f"`{json.dumps(default)}`" for key, default in keys().items()}


def test_every_error_code_is_documented_with_its_numbers() -> None:
    found = {row[0].strip("`"): tuple(map(int, row[1:4])) for row in rows("reference/errors.md") if row[0][0] == "`"}
    assert found == {code: tuple(kind) for code, kind in KINDS.items()}


async def test_every_route_is_documented_with_its_scope(here: Standing) -> None:
    offered = {(each.name, each.scope) for each in served(here.server)}
    found = {(row[0].strip("`"), row[1]) for row in rows("reference/rest.md") if row[0].startswith("`")}
    assert found == offered


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_verb_is_documented_with_its_options(name: str, command: Any) -> None:
    text = page("reference/cli.md")
    section = text.partition(f"## portico {name}\n")[2].partition("\n## ")[0]
    assert f"    portico {name}" in section, "an example"
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and option not in ("--home", "--help", "-h"):
                assert f"`{option}" in section or f" {option}" in section, option


def test_every_scope_is_documented() -> None:
    found = {row[0].strip("`") for row in rows("guide/security.md") if row[0].startswith("`")}
    assert found == set(SCOPES)


def test_links_between_documents_lead_somewhere() -> None:
    root = DOCS.parent
    for path in [*DOCS.rglob("*.md"), *root.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
            if "://" not in target and not target.startswith("mailto:"):
                assert (path.parent / target).exists(), f"{path.relative_to(root)}: {target}"


def test_the_pictures_are_there_shown_and_small() -> None:
    """`make pictures` makes those of the first page; a clone should not carry megabytes of them."""
    shown = {
        (path.parent / found).resolve()
        for path in DOCS.rglob("*.md")
        for found in re.findall(r"!\[[^]]+\]\(([^)]+)\)", path.read_text("utf-8"))
    }
    pictures = {path.resolve() for path in (DOCS / "images").iterdir()}
    assert shown == pictures
    assert {path.name for path in pictures if path.stat().st_size > 150_000} == set()
    story = re.findall(r"images/story-(\d)-\w+\.png", page("index.md"))
    assert story == ["1", "2", "3", "4", "5", "6"]


def test_every_page_is_in_the_menu_of_the_site() -> None:
    """The menu is written by hand, in the order of a reader: a new page needs its line."""
    menu = (DOCS.parent / "zensical.toml").read_text("utf-8")
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert [page for page in pages if f'"{page}"' not in menu] == []
