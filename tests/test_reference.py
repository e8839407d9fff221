"""The tables of the reference are current: `python -m tools.reference` changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tools import reference

from portico.kernel.commands import AboutSession
from tests.doors.standing import standing


@pytest.mark.parametrize(
    ("page", "write"),
    [
        (reference.COMMANDS, reference.commands_page),
        (reference.EVENTS, reference.events_page),
        (reference.SETTINGS, reference.settings_page),
    ],
    ids=["commands", "events", "settings"],
)
def test_a_page_is_current(page: Path, write: Callable[[str], str]) -> None:
    assert write(page.read_text()) == page.read_text(), "run: python -m tools.reference"


async def test_the_page_of_routes_is_current(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        written = reference.rest_page(reference.REST.read_text(), reference.served(here.server))
    assert written == reference.REST.read_text(), "run: python -m tools.reference"


class Pin(AboutSession, frozen=True, tag="session.pin"):
    """Pin it."""

    scope = "drive"

    pinned: bool
    """Whether it is | pinned,
    or not."""


OLD = """# Page

## Sessions

### `session.gone`

Removed since. Scope `read`.

### `session.pin`

Another sentence. Scope `read`.
More about it.

| field | type |
|---|---|
| `old` | text |

## Others
"""


@pytest.mark.parametrize(
    ("before", "prose"),
    [(OLD, "\nMore about it."), (OLD.replace("`session.pin`", "`session.other`"), "")],
    ids=["changed", "new"],
)
def test_a_section_follows_its_struct_and_keeps_its_prose(
    before: str, prose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico.kernel.commands.COMMANDS", {"session.pin": Pin})
    assert (
        reference.commands_page(before)
        == f"""# Page

## Sessions

### `session.pin`

Pin it. Scope `drive`.{prose}

| field | type | meaning |
|---|---|---|
| `session` | text | |
| `pinned` | yes or no | Whether it is \\| pinned, or not. |

## Others
"""
    )


def test_rows_are_added_corrected_and_removed() -> None:
    head = "| route | scope | |\n|---|---|---|\n"
    before = f"{head}| `GET /v1/a` | admin | All of `a \\| b` |\n| `GET /v1/old` | read | x |\n"
    after = f"{head}| `GET /v1/a` | read | All of `a \\| b` |\n| `GET /v1/a/{{id}}` | drive | One. |\n"
    routes = [("GET /v1/a", "read", "A."), ("GET /v1/a/{id}", "drive", "One.")]
    assert reference.rest_page(before, [reference.ServedRoute(*each) for each in routes]) == after
