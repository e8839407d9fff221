"""The command line, one file per verb. Talks to a running host through `portico.client`; only `serve` runs one.

Exit codes: 0 well, 1 a turn or job failed, 2 wrong use of the command line, 130 after Ctrl-C; else those of
`errors.KINDS` (sysexits): 64 bad input, 66 not found, 69 no host or agent, 70 a bug, 74 disk, 75 try again,
77 not allowed.
"""

import errno
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from portico.cli.output import complain
from portico.kernel.errors import LogUnavailable, PorticoError, kind

VERBS = (
    "serve",
    "send",
    "inbox",
    "run",
    "jobs",
    "automations",
    "notices",
    "check",
    "chart",
    "model",
    "agents",
    "sessions",
    "sandbox",
    "acp",
    "mcp",
    "do",
    "token",
    "pair",
    "people",
    "secrets",
    "retention",
    "usage",
    "config",
    "doctor",
    "service",
    "context",
    "hosts",
    "cluster",
    "backup",
    "restore",
    "log",
    "model-server",
    "version",
)
"""Each is a module of this folder with a function of its name, or with `app` for verbs that have verbs."""


def build(only: str | None = None) -> typer.Typer:
    """The whole command line, or one verb of it: what a verb does not need is not imported, so it starts quickly."""
    app = typer.Typer(
        help="The host for coding agents: one log, many doors.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,  # plain without a terminal
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb in VERBS if only is None else (only,):
        name = verb.replace("-", "_")
        module = import_module(f"portico.cli.{name}")
        _add(app, verb, getattr(module, "app" if hasattr(module, "app") else name))
    if only is None:
        _add_installed(app)
    return app


def _add(app: typer.Typer, verb: str, found: Any) -> None:
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=verb)
    else:
        app.command(verb, context_settings=getattr(found, "context_settings", None))(found)


def _add_installed(app: typer.Typer) -> None:
    """Add the verbs of features of other packages. One that cannot be imported is left out with a line on stderr."""
    from portico.features.registry import installed_verbs

    for verb, place in installed_verbs().items():
        module, _, name = place.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            print(f"The verb {verb!r} of {module!r} is left out: {error}", file=sys.stderr)
            continue
        if verb not in VERBS:
            _add(app, verb, found)


def whole_help(command: Any) -> Any:
    """Lists show the first sentence of each verb as a whole: without `short_help` click cuts it in the middle."""
    text = (command.help or "").strip().partition("\n\n")[0]
    command.short_help = " ".join(text.split()).partition(". ")[0].rstrip(".") + "." if text else None
    for each in getattr(command, "commands", {}).values():
        whole_help(each)
    return command


def _version(asked: bool) -> None:
    if asked:
        from portico.cli.version import version

        version()
        raise typer.Exit


def _set(name: str) -> Callable[[str | None], None]:
    """An option before the verb counts as its variable: the client looks there."""

    def put(value: str | None) -> None:
        if value is not None:
            os.environ[name] = value

    return put


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(help="A host on another machine, for this command.", callback=_set("PORTICO_URL"), is_eager=True),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Its token; better in PORTICO_TOKEN.", callback=_set("PORTICO_TOKEN"), is_eager=True),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(help="A saved host (`portico context`).", callback=_set("PORTICO_CONTEXT"), is_eager=True),
    ] = None,
    cacert: Annotated[
        str | None,
        typer.Option(
            help="A file (PEM) with the only authorities to trust.", callback=_set("PORTICO_CACERT"), is_eager=True
        ),
    ] = None,
) -> None:
    """The host for coding agents: one log, many doors."""


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else None
    app = build(wanted if wanted in VERBS else None)
    try:
        whole_help(typer.main.get_command(app))()
    except PorticoError as error:
        complain(error)
        sys.exit(kind(error).exit)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = f" to {error.filename!r}" if error.filename else ""
        full = LogUnavailable(f"Nothing was written{where}: {error.strerror}. Make some room, then try again.")
        complain(full)
        sys.exit(kind(full).exit)
