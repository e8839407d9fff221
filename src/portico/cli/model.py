"""`portico model`: models that run on this machine, without an account."""

import asyncio
import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec import Struct
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from portico.agents.agent import AgentContext
from portico.agents.registry import discover
from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, program, terminal
from portico.kernel.errors import Unreachable
from portico.models import download
from portico.models.catalogue import KNOWN, KnownModel, known
from portico.models.download import Work
from portico.models.store import ModelStore
from portico.models.store import Progress as StoreProgress
from portico.server.home import Home
from portico.server.settings_load import load

app = typer.Typer(help="List, get, remove and choose local models.", no_args_is_help=True)

ModelArgument = Annotated[str, typer.Argument(help="The model, as `portico model list` shows it.")]

LOOP = "loop"
_ASKED = "offered"
"""The file that remembers a no."""
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
    """Get a model: interrupted downloads are resumed, and all are verified.

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
def offer(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Get it without asking.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Offer the toy model where there is no coding agent and no model at all; where it is the only one, describe it.

    Example: portico model offer
    """
    store, toy = _store(home), next(each for each in KNOWN if each.toy)
    asked = store.folder / _ASKED
    advice = f"For real work add an agent (`{program()} agents add`), start Ollama, "
    advice += "or set OPENAI_BASE_URL and OPENAI_API_KEY."
    found = "nothing" if yes else asyncio.run(_found(Home.default(home)))
    if found == "toy":
        _say(f"The only model here is a toy: it chats and does no work. {advice}")
    if found != "nothing" or (asked.exists() and not yes):
        return
    asks = not yes and sys.stdin.isatty()
    way = "" if yes or asks else f" To get it: {program()} model offer --yes"
    chats = f"To look around there is a toy that only chats: {toy.name}, {_facts(toy)}.{way}"
    _say(f"No coding agent and no model was found. {advice} {chats}")
    if way:
        _answer(as_json, offered=toy.name)
        return
    if asks and not typer.confirm("Get it?", default=False):
        store.make()
        asked.touch()
        _say(f"Not now. You will not be asked again; to get it: {program()} model offer --yes")
        _answer(as_json, declined=toy.name)
        return
    if importlib.util.find_spec("xllamacpp") is None:
        _install()
    path = _with_progress(lambda show: download.get(store, toy, show, _say), toy.name)
    if store.chosen() is None:
        store.choose(toy.name)
    _say(f"{toy.name} is here: {path}")
    _answer(as_json, name=toy.name, path=str(path))


def _answer(as_json: bool, **fields: str) -> None:
    if as_json:
        print_json(fields)


_PIP_STEPS = ("Collecting", "Downloading", "Installing", "Successfully")
"""Lines of pip that show its progress."""


def _install() -> None:
    _say("Installing what runs it: portico[local]")
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "portico[local]"]
    if importlib.util.find_spec("pip") is None:  # uv makes environments without it
        raise Unreachable(f"There is no pip here. Run: uv pip install --python {sys.executable} 'portico[local]'")
    tail = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            tail = (tail + line)[-400:]
            if line.lstrip().startswith(_PIP_STEPS):
                _say(line.rstrip())
    if pip.returncode != 0:
        raise Unreachable(f"pip could not install 'portico[local]': {tail.strip()}")


async def _found(home: Home) -> Literal["agent", "model", "toy", "nothing"]:
    """The best that there is: an agent beside the built-in one and the demo, or a model for the built-in one."""
    agents = discover(AgentContext(home.path, load(home.settings_path).settings.agents))
    try:
        if {agent.id for agent in agents} - {LOOP, "demo"}:
            return "agent"
        ready = [info for agent in agents if (info := await agent.describe()).missing is None and agent.id == LOOP]
        return "nothing" if not ready else "toy" if ready[0].label == "toy" else "model"
    finally:
        await asyncio.gather(*(agent.close() for agent in agents))


@app.command()
def remove(
    name: ModelArgument,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Delete a model's file.

    Example: portico model remove smollm2-135m
    """
    _store(home).remove(name)
    print_json({"removed": name}) if as_json else _say(f"Removed {name}")


@app.command()
def use(
    name: ModelArgument,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Make a local model the first choice of the built-in agent. `models` in the settings comes before it.

    Example: portico model use qwen2.5-coder-1.5b
    """
    _store(home).choose(name)
    print_json({"chosen": name}) if as_json else _say(f"The built-in agent uses {name} now.")


def _store(home: Path | None) -> ModelStore:
    place = Home.default(home)
    place.make()
    return ModelStore(place.path / "models")


class ModelRow(Struct):
    name: str
    state: str
    size: int
    memory: int
    licence: str
    about: str


def _row(store: ModelStore, name: str, model: KnownModel | None) -> ModelRow:
    path = store.path(name)
    state = "" if path is None else "chosen" if store.chosen() == name else "here"
    size = path.stat().st_size if path is not None else model.size if model is not None else 0
    if model is None:
        return ModelRow(name, state, size, 0, "yours to know", "A file of your own.")
    return ModelRow(name, state, size, model.memory, model.licence, model.about)


def _tell(model: KnownModel) -> None:
    _say(f"{model.name}: {model.about}")
    _say(f"{_facts(model)[0].upper()}{_facts(model)[1:]}.")


def _facts(model: KnownModel) -> str:
    return f"size {_megabytes(model.size)}, memory about {_megabytes(model.memory)}, licence {model.licence}"


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
