"""The whole command line as a table: every verb where no host runs, with things that are not there, and with tokens
that may not. Each answer is one sentence that says what to do next, an exit code of `errors.KINDS`, and JSON for who
asked for JSON; a new verb without its row fails."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_help import commands
from tests.process import HostProcess, inside

NO_HOST, NOT_FOUND, BAD, REFUSED = 69, 66, 64, 77

WITHOUT_A_HOST: dict[str, tuple[str, ...]] = {
    "send": ("hello",),
    "inbox list": (),
    "inbox show": ("s-1.a1",),
    "inbox allow": ("s-1.a1",),
    "inbox deny": ("s-1.a1",),
    "inbox answer": ("s-1.q1", "yes"),
    "jobs list": (),
    "jobs show": ("job-1",),
    "jobs tail": ("job-1",),
    "jobs stop": ("job-1",),
    "jobs resume": ("job-1",),
    "jobs retry": ("job-1",),
    "automations list": (),
    "automations show": ("nightly",),
    "automations add": ("nightly", "--every", "1h", "--prompt", "look"),
    "automations edit": ("nightly", "--every", "2h"),
    "automations pause": ("nightly",),
    "automations resume": ("nightly",),
    "automations run": ("nightly",),
    "automations cancel": ("run-1",),
    "automations secret": ("nightly",),
    "automations delete": ("nightly",),
    "automations history": (),
    "notices list": (),
    "notices send-again": ("notice-1",),
    "notices test": ("phone",),
    "sessions list": (),
    "sessions show": ("s-1",),
    "sessions tail": ("s-1",),
    "sessions resume": ("s-1",),
    "sessions changes": ("s-1",),
    "sessions export": ("s-1",),
    "sessions share": ("s-1", "ann"),
    "sessions found": (),
    "pair": (),
    "sessions adopt": ("n1",),
    "sessions native": ("s-1",),
    "sessions delete": ("s-1", "--yes"),
    "do": ("session.rename", "session=s-1", "title=x"),
    "people erase": ("ann", "--yes"),
    "retention": (),
    "usage": (),
    "hosts list": (),
    "automations apply": (),
    "hosts drain": ("box",),
    "hosts give-up": ("box",),
}
"""Verbs about a running host, with words that would be right if there were one."""

BY_ITSELF = {
    "sandbox run",
    "sandbox check",
    *("serve", "run", "check", "chart", "acp", "mcp", "version", "config", "doctor", "model-server", "cluster up"),
    *("model list", "model get", "model offer", "model remove", "model use"),
    *("agents list", "agents add", "agents search", "agents test", "agents bench", "agents default", "sessions import"),
    *("token new", "token list", "token revoke", "people list", "people add", "people remove"),
    *("service install", "service remove", "context add", "context list", "context use", "context remove"),
    *("secrets set", "secrets list", "secrets remove", "jobs new", "jobs draft", "jobs test"),
    *("backup", "restore", "log check", "log copy", "automations validate"),
}
"""Verbs that start a host, or look at files of this machine first."""

NOT_THERE: dict[str, tuple[tuple[str, ...], int, str]] = {
    "jobs show": (("job-9",), NOT_FOUND, "portico jobs list"),
    "jobs tail": (("job-9",), NOT_FOUND, "portico jobs list"),
    "jobs stop": (("job-9",), NOT_FOUND, "portico jobs list"),
    "jobs resume": (("job-9",), NOT_FOUND, "portico jobs list"),
    "jobs retry": (("job-9",), NOT_FOUND, "portico jobs list"),
    "automations show": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations edit": (("nothing", "--every", "2h"), NOT_FOUND, "portico automations list"),
    "automations pause": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations resume": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations run": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations cancel": (("run-nothing",), NOT_FOUND, "portico automations history"),
    "automations secret": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations delete": (("nothing",), NOT_FOUND, "portico automations list"),
    "automations apply": (("nothing",), NOT_FOUND, "There is no workflow 'nothing'"),
    "inbox show": (("s-1.a1",), NOT_FOUND, "portico inbox list"),
    "inbox allow": (("s-1.a1",), NOT_FOUND, "portico inbox list"),
    "inbox deny": (("s-1.a1",), NOT_FOUND, "portico inbox list"),
    "inbox answer": (("s-1.q1", "yes"), NOT_FOUND, "portico inbox list"),
    "notices send-again": (("nothing",), NOT_FOUND, "There is no notice 'nothing'"),
    "notices test": (("nothing",), NOT_FOUND, "'nothing'"),
    "agents test": (("nothing",), NOT_FOUND, "'nothing'"),
    "sessions show": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions tail": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions resume": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions changes": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions export": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions share": (("s-nothing", "ann"), NOT_FOUND, "portico sessions list"),
    "sessions found": (("--agent", "nothing"), NOT_FOUND, "nothing"),
    "sessions adopt": (("nothing",), NOT_FOUND, "portico sessions found"),
    "sessions native": (("s-nothing",), NOT_FOUND, "portico sessions list"),
    "sessions delete": (("s-nothing", "--yes"), NOT_FOUND, "portico sessions list"),
    "send": (("--session", "s-nothing", "hello"), NOT_FOUND, "portico sessions list"),
    "do": (("session.rename", "session=s-nothing", "title=x"), NOT_FOUND, "portico sessions list"),
    "sessions import": (("nowhere.zip",), BAD, "nowhere.zip"),
    "token revoke": (("nothing",), NOT_FOUND, "portico token list"),
    "people remove": (("nobody",), NOT_FOUND, "'nobody'"),
    "context use": (("nothing",), NOT_FOUND, "'nothing'"),
    "context remove": (("nothing",), NOT_FOUND, "'nothing'"),
    "model use": (("nothing",), NOT_FOUND, "'nothing'"),
    "model remove": (("nothing",), NOT_FOUND, "'nothing'"),
    "check": (("nowhere.json",), BAD, "nowhere.json"),
    "chart": (("nowhere.json", "main"), BAD, "nowhere.json"),
    "automations validate": (("nowhere.toml",), BAD, "nowhere.toml"),
}
"""Verbs that name a thing, with one that there is not: what they say leads on."""

WITH_READ_ALONE: dict[str, tuple[str, ...]] = {
    "send": ("hello",),
    "sessions delete": ("SESSION", "--yes"),
    "sessions share": ("SESSION", "ann"),
    "automations add": ("nightly", "--every", "1h", "--prompt", "look"),
    "sessions resume": ("SESSION",),
    "people erase": ("ann", "--yes"),
    "retention": (),
    "do": ("session.rename", "session=SESSION", "title=x"),
}
"""Verbs that change something."""


def test_every_verb_has_its_row() -> None:
    names = {name for name, _ in commands()}
    assert set(WITHOUT_A_HOST) | BY_ITSELF == names
    assert set(WITHOUT_A_HOST).isdisjoint(BY_ITSELF)
    assert set(NOT_THERE) <= names


def words_of(verb: str, words: tuple[str, ...], *more: str) -> tuple[str, ...]:
    return (*verb.split(), *words, *more)


@pytest.mark.parametrize("verb", WITHOUT_A_HOST)
def test_without_a_host_each_says_how_to_start_one(verb: str, tmp_path: Path) -> None:
    done = inside(tmp_path / "home", *words_of(verb, WITHOUT_A_HOST[verb]))
    assert done.returncode == NO_HOST, done.stderr
    assert "portico serve" in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("verb", WITHOUT_A_HOST)
def test_without_a_host_programs_get_json(verb: str, tmp_path: Path) -> None:
    done = inside(tmp_path / "home", *words_of(verb, WITHOUT_A_HOST[verb], "--json"))
    assert done.returncode == NO_HOST
    assert json.loads(done.stderr)["code"] == "unreachable"


@pytest.mark.parametrize("verb", NOT_THERE)
def test_what_is_not_there_is_named(verb: str, host: HostProcess) -> None:
    words, code, said = NOT_THERE[verb]
    done = inside(host.home, *words_of(verb, words))
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", NOT_THERE)
def test_what_is_not_there_is_a_code_for_programs(verb: str, host: HostProcess) -> None:
    words, code, _ = NOT_THERE[verb]
    done = inside(host.home, *words_of(verb, words, "--json"))
    assert done.returncode == code, done.stderr
    assert json.loads(done.stderr.splitlines()[-1])["error"]
    assert done.stdout == ""


@pytest.fixture(scope="module")
def reader(host: HostProcess) -> Iterator[tuple[str, str]]:
    """A token that may only read, and a session that it sees."""
    token = json.loads(inside(host.home, "token", "new", "reader", "--scope", "read", "--json").stdout)["token"]
    inside(host.home, "send", "hello", "--agent", "scripted")
    session = json.loads(inside(host.home, "sessions", "list", "--json").stdout)[0]["id"]
    yield token, session
    inside(host.home, "token", "revoke", "reader")


@pytest.mark.parametrize("verb", WITH_READ_ALONE)
def test_a_token_that_may_only_read_changes_nothing(verb: str, host: HostProcess, reader: tuple[str, str]) -> None:
    token, session = reader
    words = tuple(word.replace("SESSION", session) for word in WITH_READ_ALONE[verb])
    done = inside(host.home, *words_of(verb, words), PORTICO_TOKEN=token)
    assert done.returncode == REFUSED, done.stderr
    assert "scope" in done.stderr
    shown = json.loads(inside(host.home, "sessions", "show", session, "--json").stdout)
    assert shown["title"] != "x"


@pytest.mark.parametrize("verb", [verb for verb in WITHOUT_A_HOST if verb.endswith(" list")])
def test_every_list_is_there_for_programs_and_people(verb: str, host: HostProcess) -> None:
    done = inside(host.home, *verb.split(), "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert isinstance(listed if isinstance(listed, list) else listed[verb.split()[0]], list)
    assert inside(host.home, *verb.split()).returncode == 0


@pytest.mark.parametrize("verb", ["automations show", "automations pause", "jobs show", "sessions show"])
def test_a_name_leads_nowhere_else(verb: str, host: HostProcess) -> None:
    """`portico automations show ..` asked for `/v1` and ended in a traceback."""
    done = inside(host.home, *verb.split(), "..")
    assert (done.returncode, "'..'" in done.stderr) == (NOT_FOUND, True), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("automations", "add", "x", "--prompt", "p", "--budget", "nan"), "'nan' is no amount of dollars"),
        (("automations", "add", "x", "--prompt", "p", "--set", "missed=last", "--set", "missed.x=1"), "no keys of its"),
        (("send", "hello", "--budget", "inf"), "'inf' is no amount of dollars"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str, host: HostProcess) -> None:
    """A budget that is no number was sent as none at all."""
    done = inside(host.home, *words)
    assert done.returncode in (2, BAD), done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
