"""`portico config`: every setting and where it came from."""

from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, terminal
from portico.kernel.errors import NotFound, nearest
from portico.server.home import Home
from portico.server.settings_load import (
    TABLES,
    SettingSource,
    describe,
    env_name,
    has_variable,
    is_secret,
    keys,
    load,
    shown,
)


def config(
    key: Annotated[str | None, typer.Argument(help="Only this one, for example server.port.")] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the settings file is, and nothing else.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Show every setting with its value and its source: default, file or environment.

    Settings are lines of a TOML file (--path prints its path), PORTICO_SECTION_KEY in the environment, or flags of
    `portico serve`; the later wins. A running host takes changes of the file over within a second.

    Example: portico config agent.max_steps
    """
    place = Home.default(home)
    if path:
        print_json({"path": str(place.settings_path)}) if as_json else print(place.settings_path)
        return
    sources = load(place.settings_path).sources
    if key is not None and key not in sources:
        near = nearest(key, sources)
        raise NotFound("setting", key, f"Did you mean {near!r}?" if near else "`portico config` lists them all.")
    chosen = sources if key is None else {key: sources[key]}
    if as_json:
        print_json({name: _whole(name, source) for name, source in chosen.items()})
    elif key is not None and terminal():
        _explain(key, sources[key])
    else:
        rows = [[name, repr(_shown(name, source)), source.origin] for name, source in chosen.items()]
        print_table(["setting", "value", "from"], rows, "")


def _shown(name: str, source: SettingSource) -> object:
    return "(hidden)" if is_secret(name) and source.value else shown(source.value)


def _whole(name: str, source: SettingSource) -> dict[str, object]:
    return {"value": _shown(name, source), "from": source.origin, "default": keys()[name], "about": describe(name)}


def _explain(name: str, source: SettingSource) -> None:
    print(f"{name} = {_shown(name, source)!r}   (from {source.origin}; default {keys()[name]!r})")
    print(describe(name))
    if name not in TABLES and has_variable(keys()[name]):
        print(f"Environment: {env_name(name)}")
