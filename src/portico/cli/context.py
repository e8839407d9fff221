"""`portico context`: hosts on other machines, by name."""

import sys
from getpass import getpass
from typing import Annotated
from urllib.parse import urlsplit

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, run
from portico.client import Client
from portico.client.context import HostContext, named_cacert, read, write
from portico.kernel.errors import BadRequest, NotFound

app = typer.Typer(help="Save hosts on other machines, and choose one.", no_args_is_help=True)

ContextArgument = Annotated[str, typer.Argument(help="The name of a saved host.")]
LOCAL = "local"


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for the host, for example work.")],
    url: Annotated[str, typer.Argument(help="Its address, such as https://box.example/portico.")],
    token: Annotated[str, typer.Option(help="A token of that host; '-' asks for it, or reads standard input.")] = "-",
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Save a host and its token, after asking it once, and use it from now on.

    `portico --cacert FILE context add` also saves the authority of its certificate.

    Example: portico context add box https://box.example --token -
    """
    if name == LOCAL or not name.replace("-", "").replace("_", "").isalnum():
        raise BadRequest("A context's name has letters, digits, '-' or '_', and is not 'local'.", field="name")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise BadRequest(f"{url!r} is not an address such as https://box.example.", field="url")
    found = HostContext(url.rstrip("/"), _ask_for_token(url) if token == "-" else token, named_cacert())

    async def ask() -> str:
        async with Client(found.url, found.token, cacert=found.cacert) as client:
            about = await client.about()
            return f"{about['name']} {about['version']}, you are {about['you']!r}"

    answer = run(ask())
    contexts = read()
    contexts.hosts[name] = found
    contexts.current = name
    write(contexts)
    print_json({"name": name, "url": found.url}) if as_json else print(f"{name}: {answer}", file=sys.stderr)


def _ask_for_token(url: str) -> str:
    """From a pipe, or from a person: unseen, as a password."""
    token = (getpass(f"Token for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not token:
        raise BadRequest("There is no token on standard input. Make one on that host: portico token new", field="token")
    return token


@app.command("list")
def list_contexts(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The saved hosts; `*` marks the one in use. `local` is the host of this machine.

    Example: portico context list
    """
    contexts = read()
    current = contexts.current or LOCAL
    if as_json:
        print_json({"current": current, "hosts": {name: each.url for name, each in contexts.hosts.items()}})
        return
    rows = [[f"{'*' if current == LOCAL else ' '} {LOCAL}", "the host of this machine"]]
    rows += [[f"{'*' if name == current else ' '} {name}", each.url] for name, each in contexts.hosts.items()]
    print_table(["context", "address"], rows, "")


@app.command()
def use(
    name: ContextArgument,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Choose the host that commands are about; `local` is the one of this machine.

    Example: portico context use local
    """
    contexts = read()
    if name != LOCAL and name not in contexts.hosts:
        raise NotFound("context", name, f"There are: {', '.join([LOCAL, *contexts.hosts])}.")
    contexts.current = "" if name == LOCAL else name
    write(contexts)
    print_json({"current": name}) if as_json else print(f"Commands are about {name} now.", file=sys.stderr)


@app.command()
def remove(
    name: ContextArgument,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Forget a host and its token.

    Example: portico context remove box
    """
    contexts = read()
    if contexts.hosts.pop(name, None) is None:
        raise NotFound("context", name)
    contexts.current = "" if contexts.current == name else contexts.current
    write(contexts)
    print_json({"removed": name}) if as_json else print(f"Forgot {name}", file=sys.stderr)
