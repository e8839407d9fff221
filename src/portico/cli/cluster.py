"""`portico cluster`: several hosts on this machine, to try it."""

import asyncio
import contextlib
import importlib.util
import os
import shlex
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from portico.cli.output import print_json, program
from portico.kernel.errors import BadRequest
from portico.server.home import Home
from portico.tasks import end_tasks
from portico.testing.postgres import PostgresServer
from portico.testing.round_robin import RoundRobin
from portico.testing.temporal import TemporalServer

app = typer.Typer(help="Try several hosts on this machine.", no_args_is_help=True)

_COLOURS = (36, 33, 35, 32, 34, 31)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@app.callback()
def _group() -> None:
    """So that `up` stays a separate verb."""


@app.command()
def up(
    hosts: Annotated[int, typer.Option(min=1, max=20, help="How many.")] = 3,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the proxy before them; 0 picks a free one.")] = 8890,
    folder: Annotated[Path | None, typer.Option(help="Keep everything here. [removed at the end]")] = None,
    script: Annotated[Path | None, typer.Option(help="What the scripted agent plays.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the addresses as JSON when all hosts are up.")] = False,
) -> None:
    """Start PostgreSQL, Temporal, several hosts and a proxy that gives each connection to the next, until Ctrl-C.

    Example: portico cluster up --hosts 3
    """
    with _listening(port) as listening, _place(folder) as place, contextlib.ExitStack() as stack:
        _on_signals(_interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            server = PostgresServer(place / "postgres")
            stack.callback(server.stop)
            server.start()
            temporal = _temporal(place / "temporal", stack)
            about = _About(server.url(), temporal.address if temporal else "", script)
            asyncio.run(_run(place, about, hosts, listening, as_json))
        _on_signals(signal.SIG_IGN)  # a second Ctrl-C must not leave processes running
    print("Stopped.", file=sys.stderr)


def _on_signals(handler: Any) -> None:
    """Ctrl-C, `kill` and a terminal that is closed."""
    for number in _SIGNALS:
        signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _listening(port: int) -> socket.socket:
    """First of all: who has to choose another port knows it before anything was started."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise BadRequest(
            f"Port {port}: {error.strerror}. Choose another one with --port; 0 picks a free one."
        ) from None


class _About(NamedTuple):
    """What all hosts are started with."""

    log: str
    temporal: str
    """Empty: each host runs its own jobs."""
    script: Path | None


def _temporal(folder: Path, stack: contextlib.ExitStack) -> TemporalServer | None:
    """None, and a word about it, where it is not installed."""
    try:
        if importlib.util.find_spec("temporalio") is None:
            raise BadRequest("Temporal's library is not here.")
        server = TemporalServer(folder)
        stack.callback(server.stop)
        return server.start()
    except BadRequest as error:
        hint = "pip install 'portico[cluster-demo]'"
        print(f"{error.message} Each host runs its own jobs; for Temporal: {hint}", file=sys.stderr)
        return None


@contextlib.contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="portico-cluster-") as made:
        Path(made).chmod(0o755)  # PostgreSQL runs as another user where we are root
        yield Path(made)


async def _run(place: Path, about: _About, count: int, listening: socket.socket, as_json: bool) -> None:
    stop = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    hosts = [_Host(place, about, index + 1) for index in range(count)]
    proxy = RoundRobin(listening)
    working = asyncio.ensure_future(_work(hosts, proxy, about, listening.getsockname()[1], as_json))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            await working  # raises the reason of the failure
            await stop.wait()
    finally:
        await end_tasks(working, stopping)
        await proxy.close()
        await asyncio.gather(*(host.stop() for host in hosts))


async def _work(hosts: "list[_Host]", proxy: RoundRobin, about: _About, port: int, as_json: bool) -> None:
    for host in hosts:  # the first one makes the tables and the token
        await host.start()
    await proxy.start([host.port for host in hosts])
    url = f"http://127.0.0.1:{port}"
    login = f"{url}/login?tkn={Home(hosts[0].home).token()}"
    if as_json:
        each = [{"name": host.name, "port": host.port, "home": str(host.home), "pid": host.pid} for host in hosts]
        print_json({"url": url, "login": login, "log": about.log, "temporal": about.temporal, "hosts": each})
    print(f"\n{len(hosts)} hosts behind {url}", file=sys.stderr)
    print(f"Log in with: {login}", file=sys.stderr)
    if about.temporal:
        print(f"Temporal:    {about.temporal}", file=sys.stderr)
    print(f"Hosts:       {program()} hosts list --home {hosts[0].home}", file=sys.stderr)
    print(f"One more:    {one_more(about, len(hosts) + 1)}", file=sys.stderr)
    print("Stop all of it with Ctrl-C.", file=sys.stderr, flush=True)


def _joining(about: _About, number: int) -> dict[str, str]:
    """The settings of a host that joins the others: the same place and, as the log demands, the same engine."""
    found = {"PORTICO_CLUSTER_HOST": f"host-{number}", "PORTICO_CLUSTER_PLACE": "demo"}
    engine = {"PORTICO_JOBS_ENGINE": "temporal", "PORTICO_JOBS_ADDRESS": about.temporal}
    return found | (engine if about.temporal else {})


def one_more(about: _About, number: int) -> str:
    """The command line of one more host."""
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in _joining(about, number).items())
    return f"{settings} {program()} serve --port 0 --home FOLDER --log {shlex.quote(about.log)}"


class _Host:
    """One `portico serve`, whose lines are shown in its colour."""

    def __init__(self, place: Path, about: _About, number: int) -> None:
        self.name = f"host-{number}"
        self.home = place / self.name
        self.port = 0
        self._colour = _COLOURS[number % len(_COLOURS)] if sys.stderr.isatty() else 0
        self._flags = ["--log", about.log, *(["--script", str(about.script.absolute())] if about.script else [])]
        self._environment = {**os.environ, **_joining(about, number)}
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        command = [sys.executable, "-m", "portico", "serve", "--port", "0", "--print-ready", "--home", str(self.home)]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            *self._flags,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches us, and we stop them in our order
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._tasks += [asyncio.ensure_future(each) for each in (self._show(self._process.stderr), self._tell_end())]
        line = (await self._process.stdout.readline()).decode()
        if not line.startswith("READY:"):
            raise BadRequest(f"{self.name} did not start; its lines say why.")
        self.port = int(line.removeprefix("READY:"))
        self._tasks.append(asyncio.ensure_future(self._show(self._process.stdout)))  # a full pipe would hold it up

    async def _show(self, lines: asyncio.StreamReader) -> None:
        before, after = (f"\x1b[{self._colour}m", "\x1b[0m") if self._colour else ("", "")
        while line := await lines.readline():
            text = line.decode("utf-8", "replace").rstrip()
            print(f"{before}{self.name}{after} {text}", file=sys.stderr, flush=True)

    async def _tell_end(self) -> None:
        if self._process is not None and (code := await self._process.wait()):
            words = f"is gone (signal {-code})" if code < 0 else f"has ended (exit code {code})"
            print(f"{self.name} {words}; the others take over within 10 seconds.", file=sys.stderr)

    async def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()
        await asyncio.gather(*self._tasks)
