"""The settings file is changed in one place, and stays the owner's everywhere else."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from portico.kernel.errors import BadRequest, Conflict
from portico.server.settings_edit import add_table, set_key

WRITTEN = """# mine
models = ["a"]  # in this order

[agent]
max_steps = 3
default_agent = "not this one"
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'default_agent = "x"\n'),
        ("# only words", '# only words\ndefault_agent = "x"\n'),
        ('default_agent = "y" # old\nmodels = []\n', 'default_agent = "x"\nmodels = []\n'),
        ("[agent]\nmax_steps = 3\n", 'default_agent = "x"\n[agent]\nmax_steps = 3\n'),
        ('default_agent="y"', 'default_agent = "x"\n'),
    ],
)
def test_a_key_is_set(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(before)
    set_key(path, "default_agent", "x")
    assert path.read_text() == after


def test_what_the_owner_wrote_stays_and_the_key_can_go_again(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(WRITTEN)
    set_key(path, "default_agent", "acp:goose")
    assert tomllib.loads(path.read_text()) == {**tomllib.loads(WRITTEN), "default_agent": "acp:goose"}
    assert "# mine" in path.read_text()
    set_key(path, "default_agent", None)
    assert tomllib.loads(path.read_text()) == tomllib.loads(WRITTEN)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "values",
    [
        {"command": ["my-agent", "--acp"]},
        {"command": ['a "quoted" word', "back\\slash", "\t\x7f\u2028é"], "env": {"A.B": "1", "C": "x=y"}},
    ],
)
@pytest.mark.parametrize("name", ["mine", "with.dot", "with space", 'a"b'])
def test_a_table_is_added_whatever_is_in_it(tmp_path: Path, name: str, values: dict[str, Any]) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(WRITTEN)
    add_table(path, ("agents", "acp", name), values)
    assert tomllib.loads(path.read_text())["agents"]["acp"][name] == values
    with pytest.raises(Conflict):
        add_table(path, ("agents", "acp", name), values)


@pytest.mark.parametrize(
    "text",
    ["broken [", 'default_agent = """\nx"""\n', "agents = {acp = {}}\n"],
    ids=["no TOML", "a text of several lines", "a closed table"],
)
def test_what_cannot_be_changed_safely_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(BadRequest):
        set_key(path, "default_agent", "x") if "acp" not in text else add_table(path, ("agents", "acp", "a"), {})
    assert path.read_text() == text
