"""`portico serve`: run a host."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from portico.cli.output import HomeOption, print_json, program
from portico.kernel.correlation import current
from portico.kernel.errors import BadRequest
from portico.server import memory
from portico.server.home import Home
from portico.workspace.adoption import adopt
from portico.workspace.escapes import visible, visible_json

Say = Callable[[str], None]


def serve(
    port: Annotated[
        int | None, typer.Argument(metavar="[PORT]", help="The port, as --port.", show_default=False)
    ] = None,
    port_option: Annotated[
        int | None, typer.Option("--port", "-p", help="The port; 0 picks a free one. [8888]")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on. [127.0.0.1]")] = None,
    unix_socket: Annotated[Path | None, typer.Option(help="Listen on this Unix socket, and on no address.")] = None,
    lan: Annotated[
        bool, typer.Option("--lan", help="Listen on the local network with TLS, for phones. See: portico pair.")
    ] = False,
    tls_cert: Annotated[Path | None, typer.Option(help="Speak TLS with this certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key.")] = None,
    root_path: Annotated[str | None, typer.Option(help="The base path below which a proxy offers it.")] = None,
    public_url: Annotated[str | None, typer.Option(help="How people reach it, for the login link.")] = None,
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Allow an address beyond loopback.")] = False,
    without_token: Annotated[
        bool, typer.Option("--without-token", help="No token, loopback only; for old scripts.")
    ] = False,
    workspace: Annotated[list[Path] | None, typer.Option(help="A project folder; repeatable. [current]")] = None,
    entry: Annotated[Path | None, typer.Option(help="The jobs' entry file (JSON or YAML).")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Offer only this agent; repeatable.")] = None,
    script: Annotated[Path | None, typer.Option(help="What the scripted agent plays.")] = None,
    script_delay: Annotated[float, typer.Option(min=0, help="Milliseconds every scripted turn waits.")] = 0,
    log_url: Annotated[
        str | None, typer.Option("--log", help="The log in PostgreSQL: postgresql://... [a file]")
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Test mode: short countdowns, test-only routes.")] = False,
    test_folder: Annotated[Path, typer.Option(help="Where test entries may lie, in test mode.")] = Path("test"),
    api_level: Annotated[str, typer.Option(help="Portal API level: 000 or latest.")] = "latest",
    print_ready: Annotated[bool, typer.Option("--print-ready", help="Print READY:<port> when listening.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address and the login link as JSON when listening.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Run the host until Ctrl-C.

    Example: portico serve --port 8888 --workspace ~/code/project
    """
    gc.disable()  # imported objects never become garbage, and scanning them takes a tenth of the start
    try:
        _import_uvicorn()
        from portico.server.serve_options import ServeOptions
        from portico.server.server import Server, run
    finally:
        gc.enable()

    if port is not None and port_option is not None and port != port_option:
        raise BadRequest("Give the port once.", field="port")
    flags: dict[str, Any] = {
        "server.port": port if port is not None else port_option,
        "server.host": host,
        "server.unix_socket": str(unix_socket.absolute()) if unix_socket else None,
        "server.tls_cert": str(tls_cert.absolute()) if tls_cert else None,
        "server.tls_key": str(tls_key.absolute()) if tls_key else None,
        "server.root_path": root_path,
        "server.public_url": public_url,
        "log.url": log_url,
        "workspaces": [str(each.absolute()) for each in workspace] if workspace else None,
    }
    place = Home.default(home)
    if lan:
        flags.update(_lan_flags(place, flags))
    if api_level not in ("000", "latest"):
        raise BadRequest(f"--api-level is 000 or latest, not {api_level!r}.", field="api-level")
    for each in workspace or []:
        if not each.is_dir():
            raise BadRequest(f"The workspace {str(each)!r} is not a folder.", field="workspace")
    options = ServeOptions(
        home=place,
        flags=flags,
        agents=tuple(agent or ()),
        script=script,
        script_delay=script_delay / 1000,
        allow_remote=allow_remote or lan,
        with_token=not without_token,
        test=test,
        entry=entry,
        test_folder=test_folder,
        api_level=api_level,
    )

    def ready(server: Server) -> None:
        memory.settle()
        if print_ready:
            print(f"READY:{server.port}", flush=True)
        if as_json:
            print_json({"url": server.url, "port": server.port, "pid": os.getpid(), "login": server.login_url})
        say_hello(server, without_token, say)
        if open_page:
            import webbrowser  # late: few ask for it

            webbrowser.open(server.opening_url)

    async def main() -> None:
        adopt()
        await run(options, ready)

    say = _start_logging(options.home)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())
    say("Stopped.")


def _lan_flags(place: Home, flags: dict[str, Any]) -> dict[str, Any]:
    """The private address of this machine, with a certificate for it."""
    from portico.server.lan import certificate, private_address  # late: few ask for it

    if flags["server.host"] or flags["server.tls_cert"]:
        raise BadRequest("--lan chooses the address and the certificate: leave --host and --tls-cert out.", field="lan")
    place.make()
    address = private_address()
    cert, key = certificate(place.path, address)
    return {"server.host": address, "server.tls_cert": str(cert), "server.tls_key": str(key)}


def _import_uvicorn() -> None:
    """Import the server of uvicorn without its command line: click, the reloaders and multiprocessing take a twentieth
    of the start. The package is registered before its `__init__` runs, which happens when another name is accessed."""
    spec = find_spec("uvicorn")
    if "uvicorn" in sys.modules or spec is None or spec.loader is None:
        return
    package = sys.modules["uvicorn"] = module_from_spec(spec)
    loader = spec.loader

    def import_rest(name: str) -> Any:
        del package.__getattr__
        loader.exec_module(package)
        return getattr(package, name)

    package.__getattr__ = import_rest  # type: ignore[method-assign]
    from uvicorn.config import Config
    from uvicorn.server import Server

    vars(package).update(Config=Config, Server=Server)


def say_hello(server: Any, without_token: bool, say: Say) -> None:
    from portico.agents.loop.roots import nowhere
    from portico.doors.web import NO_PAGES, pages_missing
    from portico.server.oidc import missing_package

    where = server.public_url if server.port else f"unix:{server.socket_path}"
    kept = not without_token and (server.loaded.settings.log.format == "json" or _in_journal())
    link = f"{server.public_url}/login, and the token in {server.home.token_path}" if kept else server.login_url
    say(f"Portico is ready: {where}")
    say(f"Log in with:      {link}")
    say(f"Agents:           {agents_line(list(server.host.agents))}")
    say(f"Stop with Ctrl-C, or: {server.public_url}/api/stop")
    if pages_missing():
        say(f"WARNING: {NO_PAGES}")
    if missing := missing_package(server.loaded.settings.login.oidc):
        say(f"WARNING: {missing}")
    if absent := nowhere(server.loaded.settings.agent.allowed_roots, server.host.workspaces):
        say(f"WARNING: {absent}")
    if misnamed := server.home.misnamed_settings():
        say(f"WARNING: {misnamed}")
    if without_token:
        say("WARNING: no token is needed; every program of this machine can drive your agents.")


def _in_journal() -> bool:
    """Return whether systemd stores our output, where people can read it who must not have the owner's token."""
    with contextlib.suppress(OSError):
        stream = os.fstat(sys.stderr.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{stream.st_dev}:{stream.st_ino}"
    return False


def agents_line(ids: list[str]) -> str:
    """Nothing is started for it: `portico doctor` does that."""
    if not any(each == "copilot" or each.startswith("acp:") for each in ids):
        return f"{', '.join(ids)}. No coding agent was found on the PATH; add one with: {program()} agents add"
    return f"{', '.join(ids)}. See whether they are ready with: {program()} doctor"


def _loop_factory() -> Any:
    """Return uvloop if it is installed: it needs half the CPU per message."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _start_logging(home: Home) -> Say:
    """Configure logging and return the function that prints messages for the user; with JSON logs, they are log lines
    like all others."""
    from portico.server.settings_load import load

    settings = load(home.settings_path).settings.log
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if settings.format == "json" else PlainLines("%(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for noisy in ("uvicorn", "uvicorn.error", "httpx", "httpcore", "websockets", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    if settings.format == "json":
        return logging.getLogger("portico").info
    return partial(print, file=sys.stderr, flush=True)


class PlainLines(logging.Formatter):
    """One line per message, even if it contains untrusted names and texts: a newline could forge another line, and an
    escape sequence could control the terminal of the reader."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        record.message = visible(record.message).replace("\n", "\\n")
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """One JSON object a line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **current(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return visible_json(json.dumps(line, ensure_ascii=False))
