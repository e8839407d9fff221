"""`portico model`: models that run on this machine, without an account."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, terminal
from portico.home import Home
from portico.models import download
from portico.models.catalogue import KNOWN, Known, known
from portico.models.download import Work
from portico.models.store import Progress as StoreProgress
from portico.models.store import Store

app = typer.Typer(help="List, get, remove and choose local models.", no_args_is_help=True)

_STEP_SECONDS = 2.0
"""Between two lines of progress where there is no terminal."""


@app.command("list")
def list_models(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The models that are here and those that can be had.

    Example: portico model list
    """
    store = _store(home)
    rows = [_row(store, each.name, each) for each in KNOWN]
    rows += [_row(store, name, None) for name in store.names() if known(name) is None]
    if as_json:
        print_json(rows)
        return
    shown = [
        [row.name, row.state, _megabytes(row.size), _megabytes(row.memory), row.licence, row.about] for row in rows
    ]
    print_table(["name", "state", "size", "memory", "licence", "about"], shown, "No models.")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A name from `portico model list`, or any with --file.")],
    file: Annotated[Path | None, typer.Option("--file", help="A GGUF file that you have; it is copied.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Get a model: downloads go on where they broke off, and are checked.

    Example: portico model get smollm2-135m
    """
    store = _store(home)
    if file is not None:
        path = _with_progress(lambda show: store.add(name, file, show), name)
    else:
        model = download.find(name)
        if store.path(name) is None:
            _tell(model)
            if not yes and sys.stdin.isatty():
                typer.confirm("Get it?", abort=True)
        path = _with_progress(lambda show: download.get(store, model, show, _say), name)
    if store.chosen() is None:
        store.choose(name)
    print_json({"name": name, "path": str(path)}) if as_json else _say(f"{name} is here: {path}")


@app.command()
def remove(name: str, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Delete a model's file.

    Example: portico model remove smollm2-135m
    """
    _store(home).remove(name)
    print_json({"removed": name}) if as_json else _say(f"Removed {name}")


@app.command()
def use(name: str, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Make a local model the first choice of the built-in agent. `models` in the settings comes before it.

    Example: portico model use qwen2.5-coder-1.5b
    """
    _store(home).choose(name)
    print_json({"chosen": name}) if as_json else _say(f"The built-in agent uses {name} now.")


def _store(home: Path | None) -> Store:
    place = Home.default(home)
    place.make()
    return Store(place.path / "models")


class Row(Struct):
    name: str
    state: str
    size: int
    memory: int
    licence: str
    about: str


def _row(store: Store, name: str, model: Known | None) -> Row:
    path = store.path(name)
    state = "" if path is None else "chosen" if store.chosen() == name else "here"
    size = path.stat().st_size if path is not None else model.size if model is not None else 0
    if model is None:
        return Row(name, state, size, 0, "yours to know", "A file of your own.")
    return Row(name, state, size, model.memory, model.licence, model.about)


def _tell(model: Known) -> None:
    _say(f"{model.name}: {model.about}")
    _say(f"Size {_megabytes(model.size)}, memory about {_megabytes(model.memory)}, licence {model.licence}.")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB" if size else "?"


def _with_progress(work: Work, name: str) -> Path:
    """A bar on a terminal, a line now and then without one."""
    if not terminal():
        return work(_lines(name))
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task(name, total=None)
        return work(lambda done, size: progress.update(task, completed=done, total=size or None))


def _lines(name: str) -> StoreProgress:
    said = 0.0

    def show(done: int, size: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _STEP_SECONDS or done == size:
            said = time.monotonic()
            _say(f"{name}: {_megabytes(done)} of {_megabytes(size)}")

    return show
