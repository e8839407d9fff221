"""An agent by its name alone: found on the PATH, or installed from the package that is known for it."""

import sys
from typing import Annotated, Any

import typer
from msgspec import Struct

from portico.agents.acp.catalogue import VARIABLE, AgentSource, Listed, local_copy, read, source
from portico.agents.acp.install import Offer, install, megabytes, offer, size
from portico.agents.acp.program import PRESETS, Program
from portico.cli.output import plain, print_json
from portico.kernel.errors import BadRequest, Conflict, PorticoError, nearest
from portico.server.home import Home
from portico.server.settings_load import load

RegistryOption = Annotated[
    str | None,
    typer.Option("--registry", envvar=VARIABLE, help="The address or file of another registry. [the local copy]"),
]
_NPM = "npm install -g "
_LIKE = 0.6
"""'nonsense' is half of 'opencode'; a slip of the finger is more like it than that."""


class InstalledAgent(Struct, frozen=True):
    name: str
    command: list[str]
    env: dict[str, str]


def get_agent(place: Home, name: str, registry: str | None, yes: bool, as_json: bool) -> InstalledAgent | None:
    """None: it is here already, or was only explained."""
    name = name.removeprefix("acp:")
    known = PRESETS.get(name)
    if known is not None and (known.path() is not None or not _may_install(known, yes)):
        _explain(name, known, as_json)
        return None
    listed = _preset(name, known) if known is not None else _listed(name, registry or str(local_copy(place.path)))
    wanted = source(listed) if known is None else AgentSource("npm", _package(known), known.command[1:])
    _check_free(place, listed.id)
    found = offer(wanted)
    _show(listed, wanted, found)
    if not yes and not _agreed(listed):
        return None
    return _install(place, listed.id, wanted)


def _may_install(known: Program, yes: bool) -> bool:
    return bool(_package(known)) and (yes or sys.stdin.isatty())


def _package(known: Program) -> str:
    return known.install.removeprefix(_NPM) if known.install.startswith(_NPM) else ""


def _preset(name: str, known: Program) -> Listed:
    return Listed(name, known.name)


def _listed(name: str, registry: str) -> Listed:
    hint = f"Give its command: portico agents add {name} -- COMMAND"
    try:
        agents = {each.id: each for each in read(registry)}
    except PorticoError as error:
        near = nearest(name, PRESETS, _LIKE)
        guess = f"Did you mean {near!r}? " if near else ""
        raise BadRequest(f"{guess}{error.message} {hint}") from None
    if name not in agents:
        near = nearest(name, [*PRESETS, *agents], _LIKE)
        guess = (
            f"Did you mean {near!r}? "
            if near
            else "The list of ACP agents (a newer one: portico agents search --refresh) has none of this name. "
        )
        raise BadRequest(f"{guess}{hint}")
    return agents[name]


def _check_free(place: Home, name: str) -> None:
    """Before a long download, not after it."""
    if name in load(place.settings_path).settings.agents.get("acp", {}):
        raise Conflict(f"[agents.acp.{name}] is in {str(place.settings_path)!r} already; take it out to add it anew.")


def _show(listed: Listed, wanted: AgentSource, found: Offer) -> None:
    licences = {each for each in (listed.license, found.licence) if each}
    licence = plain(" / ".join(sorted(licences))) or "unknown: look at its own page before you use it"
    about = [f"{plain(listed.name or listed.id)} {listed.version}".strip(), plain(listed.description)]
    lines = [". ".join(each for each in about if each)]
    lines += [
        f"licence  {licence}",
        f"package  {wanted.package} ({wanted.kind})",
        f"size     {found.size or 'unknown'}",
    ]
    if wanted.env:
        lines.append(f"sets     {plain(' '.join(f'{key}={value}' for key, value in wanted.env.items()))}")
    print("\n".join(lines), file=sys.stderr)


def _agreed(listed: Listed) -> bool:
    if not sys.stdin.isatty():
        raise BadRequest(f"Nothing was installed. Say --yes to install {listed.id!r}.", field="yes")
    return typer.confirm("Install it?", err=True)


def _install(place: Home, name: str, wanted: AgentSource) -> InstalledAgent:
    place.make()
    folder = place.path / "programs" / name
    print(f"Installing {wanted.package} into {folder} ...", file=sys.stderr)
    command = install(wanted, folder)
    print(f"Installed: {megabytes(size(folder))} on the disk.", file=sys.stderr)
    return InstalledAgent(name, command, wanted.env)


def _explain(name: str, known: Program, as_json: bool) -> None:
    here = known.path()
    if as_json:
        answer: dict[str, Any] = {"command": known.command, "install": known.install, "installed": here is not None}
        print_json(answer)
    elif here is not None:
        print(f"{known.name} is here ({here}) and needs no settings. See: portico agents test {name}")
    else:
        also = f" Or into Portico's own folder: portico agents add {name} --yes" if _package(known) else ""
        print(f"{known.name} is not on the PATH. Install it: {known.install}. Portico then finds it by itself.{also}")
