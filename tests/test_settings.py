"""Settings: every value knows where it came from, and a wrong one says where to look."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.errors import BadRequest
from portico.settings import Settings
from portico.settings_load import describe, env_name, keys, load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def test_without_anything_every_value_is_the_default(file: Path) -> None:
    loaded = load(file, {})
    assert loaded.settings == Settings()
    assert {source.origin for source in loaded.sources.values()} == {"default"}
    assert set(loaded.sources) == set(keys())


def test_flags_beat_the_environment_which_beats_the_file(file: Path) -> None:
    file.write_text("[server]\nport = 1\nhost = 'localhost'\n[agent]\nmax_steps = 3\n")
    environ = {"PORTICO_SERVER_PORT": "2", "PORTICO_AGENT_MAX_STEPS": "4", "PORTICO_HOME": "/x", "OTHER": "1"}
    loaded = load(file, environ, {"server.port": 3, "server.host": None})
    assert (loaded.settings.server.port, loaded.sources["server.port"].origin) == (3, "flag --port")
    assert (loaded.settings.agent.max_steps, loaded.sources["agent.max_steps"].origin) == (
        4,
        "env PORTICO_AGENT_MAX_STEPS",
    )
    assert (loaded.settings.server.host, loaded.sources["server.host"].origin) == ("localhost", str(file))


def test_lists_in_the_environment_are_divided_like_paths(file: Path) -> None:
    loaded = load(file, {"PORTICO_WORKSPACES": "/a:/b:", "PORTICO_AGENT_ENABLED": "false"})
    assert loaded.settings.workspaces == ["/a", "/b"]
    assert loaded.settings.agent.enabled is False


def test_tables_of_agents_pass_through(file: Path) -> None:
    file.write_text('[agents.acp.opencode]\ncommand = ["opencode", "acp"]\n')
    assert load(file, {}).settings.agents == {"acp": {"opencode": {"command": ["opencode", "acp"]}}}


@pytest.mark.parametrize(
    ("text", "field", "hint"),
    [
        ("[server]\nprot = 1", "server.prot", "Did you mean 'server.port'?"),
        ("[sever]\nport = 1", "sever", "Did you mean 'server'?"),
        ("worspaces = []", "worspaces", "Did you mean 'workspaces'?"),
        ("[agent]\nmaxsteps = 1", "agent.maxsteps", "Did you mean 'agent.max_steps'?"),
        ("[server]\nzzz = 1", "server.zzz", "server"),
        ("xqzw = 1", "xqzw", "Known keys:"),
        ("server = 1", "server", "must be a table"),
        ("[server]\nport = 'x'", "server.port", "has to be a whole number"),
        ("[server]\nport = 70000", "server.port", "0 to 65535"),
        ("[server]\nport = true", "server.port", "has to be a whole number"),
        ("[log]\ndurability = 'most'", "log.durability", "'normal', 'full'"),
        ("[log]\nretention_hours = -1", "log.retention_hours", "0 hours"),
        ("[log]\nretention_hours = inf", "log.retention_hours", "0 hours"),
        ("[agent]\napproval_timeout = 0", "agent.approval_timeout", "more than 0"),
        ("[agent]\napproval_timeout = nan", "agent.approval_timeout", "more than 0"),
        ("[agent]\nturn_idle_timeout = inf", "agent.turn_idle_timeout", "more than 0"),
        ("[agent]\nmax_steps = 0", "agent.max_steps", "1 to 1000"),
        ("[security]\nallow_hosts = 'x'", "security.allow_hosts", 'has to be a ["list"]'),
    ],
)
def test_a_wrong_value_names_the_key_the_file_and_the_way_out(file: Path, text: str, field: str, hint: str) -> None:
    file.write_text(text)
    with pytest.raises(BadRequest) as error:
        load(file, {})
    assert error.value.field == field
    assert hint in error.value.message
    assert str(file) in error.value.message


@pytest.mark.parametrize("content", [b"not toml", b"\xff\xfe", b"[a", b"a = 1\na = 2"])
def test_a_file_that_is_no_toml_is_a_clear_error(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BadRequest, match="cannot be read"):
        load(file, {})


def test_a_folder_in_its_place_is_a_clear_error(file: Path) -> None:
    file.mkdir()
    with pytest.raises(BadRequest, match="cannot be read"):
        load(file, {})


def test_a_wrong_variable_is_named(file: Path) -> None:
    with pytest.raises(BadRequest, match="PORTICO_SERVER_PORT='many': this has to be a whole number") as error:
        load(file, {"PORTICO_SERVER_PORT": "many"})
    assert error.value.field == "server.port"


def test_a_variable_that_is_nearly_a_setting_is_a_mistake(file: Path) -> None:
    with pytest.raises(BadRequest, match="Did you mean 'PORTICO_SERVER_PORT'"):
        load(file, {"PORTICO_SEVER_PORT": "9000"})
    others = {"PORTICO_HOME": "/x", "PORTICO_KILL_AT": "", "PORTICO_TOKEN": "x", "PORTICO_AGENTS": "x"}
    assert load(file, others).settings == Settings()


def test_every_setting_explains_itself() -> None:
    for key in keys():
        assert describe(key).endswith("."), key
    assert env_name("agent.max_steps") == "PORTICO_AGENT_MAX_STEPS"


NEEDED_BY = {"login.oidc.client_id": "login.oidc.issuer", "login.oidc.domains": "login.oidc.issuer"}
"""Settings that are missing once another one is there: the error names what is missing."""


@given(
    st.dictionaries(st.sampled_from([*keys(), "nosuch"]), st.none() | st.integers() | st.text() | st.lists(st.text()))
)
def test_any_flag_gives_settings_or_an_error_that_names_it(flags: dict[str, Any]) -> None:
    flags.pop("nosuch", None)
    try:
        loaded = load(Path("/nosuch/settings.toml"), {}, flags)
    except BadRequest as error:
        named = str(error.field)
        assert {named, NEEDED_BY.get(named)} & set(flags)
    else:
        assert all(loaded.sources[key].value == value for key, value in flags.items() if value is not None)
