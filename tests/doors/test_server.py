"""The process: how it starts and stops, alone on its home, and how it takes new settings over."""

import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from portico.client import Client
from portico.features.approvals.policy import ApprovalRules
from portico.kernel.catalogue import Catalogue
from portico.kernel.errors import BadRequest, HomeInUse, LogUnavailable
from portico.kernel.events import HOST, Audited, Event, HostStopped, PartDelta, TurnEnded
from portico.kernel.host import Host
from portico.kernel.log import sqlite
from portico.kernel.log.sqlite import SqliteLog, error_text
from portico.server import server as module
from portico.server.gate import Gate
from portico.server.home import Home, HostEndpoint
from portico.server.identity import new_token, revoke_token
from portico.server.server import Server
from portico.server.sockets import listen
from tests.doors import sharing
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, options, problem, standing
from tests.features import feature
from tests.process import HostProcess, inside, portico

anyio_backend, shared = sharing.anyio_backend, sharing.shared


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a file that is read again sends no event
            await asyncio.sleep(0.01)


# -- the order -------------------------------------------------------------------------------------------------


def _spy(monkeypatch: pytest.MonkeyPatch, steps: list[str], owner: type, name: str) -> None:
    right = getattr(owner, name)

    def spied(self: object, *args: object, **kwargs: object) -> object:
        step = f"{owner.__name__}.{name}"
        if step not in steps:
            steps.append(step)
        return right(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, spied)


async def test_it_starts_and_stops_in_the_written_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    start = [
        (Home, "make"),
        (Home, "lock"),
        (SqliteLog, "__init__"),
        (Catalogue, "read"),
        (Gate, "add"),
        (Server, "_listen"),
        (Home, "announce"),
    ]
    stop = [(Host, "close"), (Home, "retract"), (Gate, "close_all"), (SqliteLog, "close"), (Home, "unlock")]
    for owner, name in [*start, *stop]:
        _spy(monkeypatch, steps, owner, name)
    async with Server(options(tmp_path)) as server:
        assert steps == [f"{owner.__name__}.{name}" for owner, name in start]
        steps.clear()
        server.stop()
        await server.stopped()
    assert steps == [f"{owner.__name__}.{name}" for owner, name in stop]


async def test_a_client_that_listens_sees_how_its_turn_ends_when_the_host_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    began = asyncio.Event()

    async def listen_on(here: Standing, session: str) -> None:
        async with (
            Client(here.url, here.home.token(), reconnect_timeout=0) as client,
            contextlib.aclosing(client.session(session).follow()) as records,
        ):
            async for record in records:
                seen.append(type(record.event).__name__)
                if isinstance(record.event, PartDelta):
                    began.set()
                if isinstance(record.event, TurnEnded):
                    assert record.event.outcome == "interrupted"
                    return

    async with standing(tmp_path) as here:
        session = await here.start()
        listening = asyncio.ensure_future(listen_on(here, session))
        await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "[[say:half]][[hang]]"})
        await asyncio.wait_for(began.wait(), 60)
    await asyncio.wait_for(listening, 60)
    assert seen.count("TurnEnded") == 1
    assert "Exception in ASGI" not in caplog.text


async def test_open_streams_end_cleanly_when_the_host_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with standing(tmp_path) as here:
            http = await stack.enter_async_context(here.client(here.home.token(), Accept="text/event-stream"))
            answer = await stack.enter_async_context(http.stream("GET", "/v1/events"))
            lines = answer.aiter_lines()
            assert await anext(lines) == "retry: 1000"
        async for _ in lines:  # ends without an error
            pass
    assert "Exception in ASGI" not in caplog.text


async def test_the_last_event_says_that_the_host_stopped(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        path = here.home.log_path
    log = await SqliteLog.open(path)
    records = await log.read("host")
    assert isinstance(records[-1].event, HostStopped)
    await log.close()


async def test_a_failed_start_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadRequest, match=f"Cannot listen on 127.0.0.1:{port}") as error:
            await Server(options(tmp_path, flags={"server.port": port})).__aenter__()
        assert error.value.field == "port"
    async with standing(tmp_path) as here:  # the lock is free, the home usable
        assert (await here.http.get("/v1")).status_code == 200


# -- addresses (SECURITY 1) ------------------------------------------------------------------------------------


async def test_it_listens_on_loopback_only_by_default(shared: Standing) -> None:
    port = shared.server.port
    names = sorted(each.getsockname()[0] for each in shared.server._sockets)
    assert names[0] == "127.0.0.1"
    assert set(names) <= {"127.0.0.1", "::1"}
    if "::1" in names:
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"http://[::1]:{port}/healthz")).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
async def test_another_address_needs_the_users_word(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadRequest, match="--allow-remote") as error:
        await Server(options(tmp_path, flags={"server.host": host})).__aenter__()
    assert error.value.field == "host"
    assert not (tmp_path / "home").exists()


async def test_another_address_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="loopback only"):
        await Server(
            options(tmp_path, flags={"server.host": "0.0.0.0"}, allow_remote=True, with_token=False)
        ).__aenter__()


async def test_with_the_users_word_it_listens_there_and_answers_to_its_names(tmp_path: Path) -> None:
    flags = {"server.host": "0.0.0.0", "security.allow_hosts": ["box.example"]}
    async with standing(tmp_path, flags=flags, allow_remote=True) as here:
        for name, status in [("box.example", 200), ("0.0.0.0", 200), ("evil.example", 421)]:
            assert (await here.http.get("/v1", headers={"Host": f"{name}:1"})).status_code == status


def test_listening_on_a_strange_name_is_a_clear_error() -> None:
    with pytest.raises(BadRequest, match="Cannot listen"):
        listen("no.such.host.invalid", 0)


# -- one host per home -----------------------------------------------------------------------------------------


def test_it_may_open_as_many_files_as_it_has_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        module.allow_files(600)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)
        module.allow_files(500)  # never fewer than there are
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)
        module.allow_files(1 << 40)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) in ((hard, hard), (1 << 40, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_two_hosts_on_one_home(shared: Standing) -> None:
    with pytest.raises(HomeInUse) as error:
        await Server(options(shared.home.path.parent)).__aenter__()
    assert shared.url in error.value.message
    assert str(os.getpid()) in error.value.message
    assert (await shared.http.get("/v1")).status_code == 200  # the first one did not notice


def test_two_host_processes_on_one_home(tmp_path: Path) -> None:
    with HostProcess(tmp_path / "home") as host:
        second = portico(tmp_path / "home", "serve", "0")
        assert second.returncode == 75
        assert host.url in second.stderr
        assert "Traceback" not in second.stderr
        host.kill()
    with HostProcess(tmp_path / "home") as again:  # a kill leaves no lock behind
        assert inside(tmp_path / "home", "sessions", "list", "--json").returncode == 0
        assert again.port


# -- the endpoint file (SECURITY 11) ---------------------------------------------------------------------------


async def test_the_endpoint_file_says_where_and_goes_with_the_host(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        path = here.home.endpoint_path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        endpoint = here.home.endpoint()
        assert endpoint is not None
        assert (endpoint.url, endpoint.pid) == (here.url, os.getpid())
        assert endpoint.token_path == str(here.home.token_path)
        assert here.home.token() not in path.read_text()
        async with Client.local(here.home.path) as client:
            assert (await client.about())["you"] == "owner"
    assert not path.exists()


def test_the_file_of_a_dead_process_is_dropped(tmp_path: Path) -> None:
    home = Home(tmp_path)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    home.announce(HostEndpoint("http://127.0.0.1:1", int(dead.stdout), None, "0"))
    assert home.endpoint() is None
    assert not home.endpoint_path.exists()


# -- settings --------------------------------------------------------------------------------------------------


@pytest.fixture
async def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Standing]:
    """A server that looks at its files often."""
    monkeypatch.setattr(module, "_WATCH_SECONDS", 0.02)
    async with standing(tmp_path) as here:
        yield here


async def _audited(here: Standing, action: str) -> Audited:
    async with (
        asyncio.timeout(30),
        Client(here.url, here.home.token()) as client,
        contextlib.aclosing(client.follow("/v1/events", channel="host")) as records,
    ):
        async for record in records:
            if isinstance(record.event, Audited) and record.event.action == action:
                return record.event
    raise AssertionError


async def test_new_settings_are_taken_over_while_it_runs(quick: Standing) -> None:
    quick.home.settings_path.write_text(
        '[agent]\napproval_timeout = 7\n[security]\nallow_hosts = ["box.example"]\nallow_origins = ["https://o.example"]\n'
    )
    changed = await _audited(quick, "settings.changed")
    assert set(changed.detail["keys"]) == {"agent.approval_timeout", "security.allow_hosts", "security.allow_origins"}
    assert quick.server.host.approval_timeout == 7
    headers = {"Host": "box.example", "Origin": "https://o.example"}
    assert (await quick.http.get("/v1", headers=headers)).status_code == 200


async def test_new_rules_of_approval_count_at_once(quick: Standing) -> None:
    rules = feature(quick.server.host, ApprovalRules).policy
    assert rules.settings.edits == {}
    quick.home.settings_path.write_text(
        '[approvals]\nreads = false\nedits = ["src/**", "!src/x"]\nallow_commands = ["make"]\n'
        'ask_commands = ["make install"]\ndeny_commands = ["sudo"]\n'
    )
    await until(lambda: not rules.settings.reads)
    assert (rules.settings.edits, rules.settings.commands, rules.settings.refused) == (
        {"src/**": True, "src/x": False},
        {"make": True, "make install": False},
        ("sudo",),
    )


async def test_rules_that_an_editor_pushed_hold_after_a_restart_before_any_editor_is_back(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        async with opened(
            WireClient(f"{here.url}/ahp?tkn={here.home.token()}".replace("http", "ws"), "e", "0.9.0")
        ) as c:
            await c.initialize(c.root)
            await c.act(c.root, "root/configChanged", config={"terminalAutoApproveRules": {"make": True, "rm": False}})
        pushed = feature(here.server.host, ApprovalRules).policy.clients
        assert pushed.commands == {"make": True, "rm": False}
    async with standing(tmp_path) as here:
        assert feature(here.server.host, ApprovalRules).policy.clients == pushed


@pytest.mark.parametrize(
    "broken",
    [
        '[approvals]\nallow_commands = ["/(/"]',
        '[approvals]\nedits = [""]',
        "[agent]\napproval_timeout = -1",
        "not toml",
        "[agent]\nmax_step = 3",
        '[security]\nallow_origins = ["*"]',
    ],
)
async def test_a_broken_edit_keeps_the_old_values_and_says_so(
    quick: Standing, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    quick.home.settings_path.write_text("[agent]\napproval_timeout = 7\n")
    await until(lambda: quick.server.host.approval_timeout == 7)
    quick.home.settings_path.write_text(broken)
    await until(lambda: "not taken over" in caplog.text)
    assert quick.server.host.approval_timeout == 7
    assert (await quick.http.get("/v1")).status_code == 200
    quick.home.settings_path.write_text("[agent]\napproval_timeout = 8\n")
    await until(lambda: quick.server.host.approval_timeout == 8)
    quick.home.settings_path.unlink()
    await until(lambda: quick.server.host.approval_timeout is None)


async def test_broken_settings_are_an_error_at_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text("[sevrer]\nport = 1\n")
    with pytest.raises(BadRequest, match="Did you mean 'server'"):
        Server(options(tmp_path))
    (home / "settings.toml").write_text('[security]\nallow_origins = ["example.org"]\n')
    with pytest.raises(BadRequest, match="is not an origin") as error:
        await Server(options(tmp_path)).__aenter__()
    assert error.value.field == "allow_origins"


# -- the audit record (SECURITY 26) ----------------------------------------------------------------------------


async def test_token_changes_are_on_record_also_those_made_while_no_host_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path) as here:
        home = here.home
    new_token(home, "early", ["read"])
    monkeypatch.setattr(module, "_WATCH_SECONDS", 0.02)
    async with standing(tmp_path) as here:
        new_token(home, "phone", ["read"])
        await until(lambda: "phone" in here.server._token_audit._known.values())
        revoke_token(home, "phone")
        revoked = await _audited(here, "token.revoked")
        assert revoked.detail == {"token": "phone"}
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        added = [each["detail"]["token"] for each in audit if each["action"] == "token.added"]
        assert added == ["owner", "early", "phone"]


# -- signals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_mid_turn_interrupts_it_and_the_host_leaves_well(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / "home"
    with HostProcess(home) as host:
        sent = inside(home, "send", "[[say:half an answer]][[hang]]", "--agent", "scripted", "--detach")
        session = sent.stdout.strip()
        asyncio.run(_wait_for_text(home, session))
        assert host.stop(number) == 0
        assert "Traceback" not in host.log()
        assert not (home / "endpoint.json").exists()
    with HostProcess(home):
        shown = inside(home, "sessions", "show", session).stdout
    assert "half an answer" in shown
    assert "-- interrupted" in shown


async def _wait_for_text(home: Path, session: str) -> None:
    async with (
        asyncio.timeout(30),
        Client.local(home) as client,
        contextlib.aclosing(client.session(session).follow()) as records,
    ):
        async for record in records:
            if isinstance(record.event, PartDelta) and record.event.text.startswith("half"):
                return


async def test_everything_in_the_home_is_private(tmp_path: Path) -> None:
    """SECURITY 27, while it runs and afterwards."""
    async with standing(tmp_path) as here:
        new_token(here.home, "phone", ["read"])
        await here.say(await here.start(), "[[say:x]]")
        await here.server.host.log.put_blob(b"x" * 100_000)
        _check_private(here.home.path)
    _check_private(tmp_path / "home")


def _check_private(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_an_audit_that_fails_is_not_the_last_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One failed audit ended the watcher of settings and tokens for good: revoked tokens kept their connections."""
    monkeypatch.setattr(module, "_WATCH_SECONDS", 0.01)
    async with standing(tmp_path) as here:
        log, failures = here.server.host.log, iter([RuntimeError("a bug"), LogUnavailable("The disk is full.")])
        right = log.append

        async def append(channel: str, *events: Event) -> int:
            if any(isinstance(event, Audited) for event in events) and (error := next(failures, None)):
                raise error
            return await right(channel, *events)

        monkeypatch.setattr(log, "append", append)
        new_token(here.home, "phone", ["read"])
        async with asyncio.timeout(30):
            async for records in log.follow(HOST):
                if any(isinstance(each.event, Audited) and each.event.detail == {"token": "phone"} for each in records):
                    break
        here.home.settings_path.write_text("[agent]\nmax_steps = 7\n")
        await until(lambda: here.server.loaded.settings.agent.max_steps == 7)
    assert "a bug" in caplog.text
    assert "The disk is full." in caplog.text


async def test_a_start_on_a_full_disk_does_not_promise_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that it would go on by itself, and exited."""

    async def append(self: SqliteLog, channel: str, *events: Event) -> int:
        raise error_text.translate(sqlite3.OperationalError("database or disk is full"), tmp_path / "log.db")

    monkeypatch.setattr(SqliteLog, "append", append)
    with pytest.raises(LogUnavailable, match="Free some space; then start the host again"):
        await Server(options(tmp_path)).__aenter__()


async def test_a_home_that_cannot_be_written_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def announce(self: Home, endpoint: HostEndpoint) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "endpoint.json")

    monkeypatch.setattr(Home, "announce", announce)
    with pytest.raises(LogUnavailable, match="cannot be used: No space left on device"):
        await Server(options(tmp_path)).__aenter__()


async def test_a_log_that_is_moved_away_is_on_the_health_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No acknowledgement after that, within a second."""
    async with standing(tmp_path) as here:
        session, path = await here.start(), here.home.log_path
        failed = asyncio.Event()
        here.server.host.log.on_failure(lambda _: failed.set())
        os.rename(path, tmp_path / "elsewhere")
        assert sqlite.WATCH_SECONDS < 1
        await asyncio.wait_for(failed.wait(), 60)
        assert (await here.http.get("/healthz")).status_code == 503
        answer = await here.http.patch(f"/v1/sessions/{session}", json={"title": "lost"})
        assert "was moved away" in problem(answer, 503, "log_unavailable")
        os.rename(tmp_path / "elsewhere", path)
        await asyncio.wait_for(here.server.host.log.available(), 60)
        assert (await here.http.get("/healthz")).status_code == 200
