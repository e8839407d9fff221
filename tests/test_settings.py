"""Settings: every value knows where it came from, and a wrong one says where to look."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest
from portico.server.settings import Settings
from portico.server.settings_load import describe, env_name, is_secret, keys, load, shown


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
        ("[log]\nurl = 'mysql://x'", "log.url", "postgresql://"),
        ("[log]\ndisk_share = 0.0", "log.disk_share", "more than 0, at most 1"),
        ("[log]\ndisk_share = 1.1", "log.disk_share", "more than 0, at most 1"),
        ("[cluster]\nhost = 'a b'", "cluster.host", "without spaces"),
        ("[cluster]\nhost = 'a/b'", "cluster.host", "slashes"),
        ("[cluster]\nplace = ' '", "cluster.place", "without spaces"),
        ("[cluster]\nplace = 'a\\tb'", "cluster.place", "without spaces"),
        (f"[cluster]\nplace = '{'x' * 101}'", "cluster.place", "1 to 100"),
        ("[cluster]\nlabels = ['']", "cluster.labels", "1 to 100"),
        ("[cluster]\nlabels = ['gpu,big']", "cluster.labels", "commas"),
        ("[cluster]\naddress = '0.0.0.0'", "cluster.address", "not all of its addresses"),
        ("[cluster]\naddress = ''", "cluster.address", "not all of its addresses"),
        ("[cluster]\ncapacity = 0", "cluster.capacity", "1 to 100000 sessions"),
        ("[cluster]\ncapacity = 100001", "cluster.capacity", "1 to 100000 sessions"),
        ("[cluster]\nlease_seconds = 0.4", "cluster.lease_seconds", "half a second to an hour"),
        ("[cluster]\nlease_seconds = 3601.0", "cluster.lease_seconds", "half a second to an hour"),
        ("[cluster]\nport = 65536", "cluster.port", "0 to 65535"),
        ("[agent]\nmax_steps = 1001", "agent.max_steps", "1 to 1000 steps"),
        ("[approvals]\nedits = ['']", "approvals.edits", "at most 500 characters"),
        (f"[approvals]\nallow_commands = ['{'x' * 501}']", "approvals.allow_commands", "at most 500 characters"),
        ("[approvals]\ndeny_commands = ['/(/']", "approvals.deny_commands", "is a regular expression"),
        ("[people]\nscopes = ['read', 'fly']", "people.scopes", "each scope is one of"),
        ("[login.oidc.groups]\ndev = ['fly']", "login.oidc.groups", "each scope is one of"),
        ("[login.oidc]\nissuer = 'https://x'", "login.oidc.client_id", "knows this host by a name"),
        ("[login.oidc]\nissuer = 'https://x'\nclient_id = 'y'", "login.oidc.domains", "say who may come in"),
        ("[login.oidc]\nhours = 0.0", "login.oidc.hours", "more than 0 hours"),
        ("[login.oidc]\nhours = 8761.0", "login.oidc.hours", "at most a year"),
        ("[retention]\narchive_days = 9.0\ndelete_days = 8.0", "retention.delete_days", "not archived later"),
        ("[[retention.rules]]\narchive_days = 9.0\ndelete_days = 8.0", "retention.delete_days", "not archived later"),
        ("[quotas]\nsessions = -1", "quotas.sessions", "0 or more"),
        ("[login]\noidc = 1", "login.oidc", "must be a table"),
        ("[[notices.webhooks]]\ncolour = 1", "notices.webhooks", "notices.webhooks"),
    ],
)
def test_a_wrong_value_names_the_key_the_file_and_the_way_out(file: Path, text: str, field: str, hint: str) -> None:
    file.write_text(text)
    with pytest.raises(BadRequest) as error:
        load(file, {})
    assert error.value.field == field
    assert hint in error.value.message
    assert str(file) in error.value.message


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[log]\nurl = 'mysql://me:hunter2@db/x'", "log.url"),
        ("[login.oidc]\nclient_secret = ['hunter2']", "login.oidc.client_secret"),
    ],
)
def test_a_wrong_value_is_told_without_its_secret(file: Path, text: str, field: str) -> None:
    """A database's password stood in the line that a host refused to start with."""
    file.write_text(text)
    with pytest.raises(BadRequest) as error:
        load(file, {})
    assert error.value.field == field
    assert "hunter2" not in error.value.message


@pytest.mark.parametrize(
    ("key", "value", "flag"),
    [("log.url", "log.db", "--log"), ("server.port", -1, "--port"), ("server.public_url", 5, "--public-url")],
)
def test_an_error_names_the_flag_as_it_is_written(key: str, value: object, flag: str) -> None:
    """A wrong `--log` was said to be a wrong `--url`."""
    with pytest.raises(BadRequest, match=f"flag {flag}: "):
        load(Path("/nosuch/settings.toml"), {}, {key: value})


NUMBERS = {
    key: type(value) for key, value in keys().items() if isinstance(value, int | float) and not isinstance(value, bool)
}


@pytest.mark.parametrize("key", NUMBERS)
def test_every_number_has_a_bound_below(key: str) -> None:
    """With `agent.max_processes = -1` all turns waited that needed a second process."""
    for value in (-1, -1e300) if NUMBERS[key] is float else (-1, -(10**15)):
        with pytest.raises(BadRequest) as refused:
            load(Path("/nosuch/settings.toml"), {}, {key: NUMBERS[key](value)})
        assert refused.value.field in (key, "retention.delete_days")


@pytest.mark.parametrize("key", [key for key, kind in NUMBERS.items() if kind is float])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_is_one_that_can_be_reckoned_with(key: str, value: float) -> None:
    with pytest.raises(BadRequest):
        load(Path("/nosuch/settings.toml"), {}, {key: value})


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nport = 0",
        "[server]\nport = 65535",
        "[log]\nurl = 'postgres://x/y'",
        "[log]\ndisk_share = 1.0",
        "[log]\nretention_hours = 0.0",
        "[cluster]\ncapacity = 100000\nlease_seconds = 0.5\nport = 65535",
        "[cluster]\ncapacity = 1\nlease_seconds = 3600.0",
        "[agent]\nmax_steps = 1\nmax_processes = 0\nmax_memory_mb = 0",
        "[agent]\nmax_steps = 1000\napproval_timeout = 0.1\nturn_idle_timeout = 0.1",
        "[approvals]\nallow_commands = ['/^make( test)?$/', 'git log', '/']",
        "[people]\nscopes = []",
        "[login.oidc]\nissuer = 'https://x'\nclient_id = 'y'\ndomains = ['*']\nhours = 8760.0",
        "[login.oidc]\nissuer = 'https://x'\nclient_id = 'y'\n[login.oidc.groups]\ndev = ['read']",
        "[retention]\narchive_days = 8.0\ndelete_days = 8.0",
        "[retention]\narchive_days = 8.0",
        "[quotas]\nsessions = 0\nturns = 1",
    ],
)
def test_the_bounds_themselves_are_taken(file: Path, text: str) -> None:
    file.write_text(text)
    assert str(file) in {source.origin for source in load(file, {}).sources.values()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("postgresql://ann:secret@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        (["http://a:b@c", 7], ["http://a:***@c", 7]),
        ({"secret": "x", "url": "u"}, {"secret": "***", "url": "u"}),
        ({"url": "u"}, {"url": "u"}),
        (True, True),
    ],
)
def test_a_setting_is_shown_without_its_secret(value: Any, expected: Any) -> None:
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("jobs.api_key", True),
        ("login.proxy.secret", True),
        ("login.oidc.client_secret", True),
        ("server.port", False),
        ("login.proxy.secret_file", False),
    ],
)
def test_which_settings_nobody_is_shown(key: str, secret: bool) -> None:
    assert is_secret(key) is secret


def test_what_is_each_hosts_own_is_not_shared(file: Path) -> None:
    shared = file.with_name("shared.toml")
    shared.write_text("[agent]\nmax_steps = 3\n")
    file.write_text("[log]\nlevel = 'debug'\n")
    loaded = load(file, {})
    assert (loaded.settings.agent.max_steps, loaded.sources["agent.max_steps"].origin) == (3, str(shared))
    file.write_text("[agent]\nmax_steps = 4\n")
    assert load(file, {}).settings.agent.max_steps == 4
    shared.write_text("[server]\nport = 1\n")
    with pytest.raises(BadRequest, match=r"'server\.port' is each host's own") as refused:
        load(file, {})
    assert refused.value.field == "server.port"


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
