"""Runs a workflow against scripted answers, in a host and a folder of its own: `portico jobs test`.

Agents, questions and waits are scripted by the id of their step. Commands run as they are, unless the case replaces
them. Items run one after the other, so that the order of steps is always the same.
"""

import asyncio
import contextlib
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.context import context_at
from portico.features.jobs.entry import Entry, Model, Over, leaves_of
from portico.features.jobs.rows import rows_of
from portico.features.jobs.state import JobState
from portico.features.jobs.step import AskDo, FlowStep, HttpDo, MergeDo, PromptDo, RunDo, WaitDo
from portico.features.jobs.work import ROOT
from portico.features.jobs.workflow.files import SUFFIXES, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs
from portico.features.jobs.workflow.read import read_yaml
from portico.features.jobs.workflow.template import evaluate
from portico.features.secrets.store import SecretStore
from portico.kernel import events as e
from portico.kernel.agent import Opening
from portico.kernel.errors import BadRequest
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.turn import Turn
from portico.server.compose import Provided, build_host
from portico.server.home import Home
from portico.testing.play import PlayAgent, PlayConversation

CASE_SECONDS = 60.0
"""The longest case: scripted steps take milliseconds."""
_MARK = "\n\n(Step: {})"
_MARKED = re.compile(r"\(Step: ([\w.-]+)\)")
_PRINT = 'cat; exit "$1"'


class Reaction(Struct, frozen=True, forbid_unknown_fields=True):
    """What the agent does in one turn."""

    say: Any = ""
    """Its answer; data is sent as JSON."""
    write: dict[str, str] = {}
    """Files by path in the folder of the step."""
    fail: str = ""
    """The turn fails with this message."""


class Printed(Struct, frozen=True, forbid_unknown_fields=True):
    """What a command prints in place of running."""

    output: Any = ""
    exit: int = 0


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """What has to be true at the end. Keys that are absent are not compared."""

    outcome: Literal["succeeded", "failed", "canceled"] = "succeeded"
    steps: list[str] | None = None
    """The ids of all steps in the order in which they started."""
    values: dict[str, Any] = {}
    """Values by template, such as `steps.review.output.approved`."""
    result: Any | UnsetType = UNSET
    error: str = ""
    """A part of the reason of the failure."""


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    inputs: dict[str, Any] = {}
    payload: Any = None
    """Of the hook that starts the job."""
    files: dict[str, str] = {}
    """The project: a git repository with these files in its only commit."""
    agent: dict[str, list[Reaction | str] | Reaction | str] = {}
    """By step: what the agent does, turn by turn. The last one is repeated. A text is its answer."""
    run: dict[str, Printed | str | list[Any]] = {}
    """By step: what a command or a request gives, in place of running it."""
    answers: dict[str, list[str] | str] = {}
    """By step: what the person answers, question by question. The last one is repeated."""
    expect: Expected = Expected()


class CaseFile(Struct, frozen=True, forbid_unknown_fields=True):
    cases: list[Case]
    workflow: str = ""
    """The path of the workflow from here. Absent: the file of the same name in the folder above."""


class CaseResult(Struct):
    name: str
    passed: bool
    wrong: list[str] = []
    """What differs, one line each."""
    steps: list[str] = []


def read_cases(path: Path) -> tuple[Path, list[Case]]:
    """The workflow of a file of cases, and the cases."""
    try:
        data, _ = read_yaml(path.read_text(), str(path))
        file = msgspec.convert(data, CaseFile)
    except OSError as error:
        raise BadRequest(f"{str(path)!r} cannot be read: {error.strerror}.", field="file") from None
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        raise BadRequest(f"{path}: {place.strip('.`') or 'the file'}: {text}.", field="file") from None
    above = path.parent.absolute().parent
    names = [path.parent / file.workflow] if file.workflow else [above / f"{path.stem}{each}" for each in SUFFIXES]
    found = next((each for each in names if each.is_file()), None)
    if found is None:
        words = f"There is no workflow {str(names[0])!r}. Name it with 'workflow' in {path.name!r}."
        raise BadRequest(words, field="workflow")
    return found, file.cases


async def run_case(workflow: Path, case: Case) -> CaseResult:
    entry = load_workflow(workflow)
    (name,) = entry.jobs
    _check_ids(entry, name, case)
    with tempfile.TemporaryDirectory(prefix="portico-case-") as place:
        folder = Path(place) / "project"
        await asyncio.to_thread(_make_project, folder, case.files)
        await asyncio.to_thread(_set_secrets, Path(place), entry)
        async with _jobs(Path(place), case) as jobs:
            state = await _run(jobs, entry, name, folder, case)
            return _compared(case, state)


def _set_secrets(place: Path, entry: Entry) -> None:
    """A case needs no real secret: commands and requests are scripted, so any value will do."""
    leaves = (leaf for job in entry.jobs.values() for leaf in leaves_of(job.work))
    names = {name for leaf in leaves if isinstance(leaf, FlowStep) for name in leaf.secrets}
    store = SecretStore(Home(place / "home"))
    for name in names:
        store.set(name, f"{name} of a case")


@contextlib.asynccontextmanager
async def _jobs(place: Path, case: Case) -> AsyncIterator[Jobs]:
    log = await SqliteLog.open(place / "log.db")
    host = await build_host(log, [_CaseAgent(case)], provided=Provided(Home(place / "home")))
    jobs = await Jobs.open(host)
    answering = host.own(_answer(host, case), "answers")
    try:
        yield jobs
    finally:
        answering.cancel()
        await host.close()
        await log.close()


async def _run(jobs: Jobs, entry: Entry, name: str, folder: Path, case: Case) -> JobState:
    flow = entry.jobs[name].flow
    assert flow is not None
    inputs = check_inputs(flow.inputs, case.inputs, case.payload)
    trigger = {"payload": case.payload} if case.payload is not None else {}
    job = await jobs.start_job(
        name, cwd=str(folder), by="case", entry=_scripted(entry, case), inputs=inputs, trigger=trigger
    )
    try:
        async with asyncio.timeout(CASE_SECONDS):
            async for records in jobs.host.log.follow(f"job/{job}"):
                if any(isinstance(record.event, je.JobEnded) for record in records):
                    break
    except TimeoutError:
        await jobs.stop_job(job, by="case")
    return await jobs.load(job)


def _make_project(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    author = ("-c", "user.name=Portico", "-c", "user.email=portico@localhost")
    commands = (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-q", "--allow-empty", "-m", "start"))
    for words in commands:
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


# -- the workflow with its script ----------------------------------------------------------------------------------


def _check_ids(entry: Entry, name: str, case: Case) -> None:
    flow = entry.jobs[name].flow
    assert flow is not None
    for key in ("agent", "run", "answers"):
        for ident in getattr(case, key):
            if ident not in flow.ids and (key != "agent" or ident not in entry.tasks):
                known = ", ".join(flow.ids)
                raise BadRequest(f"{case.name}: {key}: there is no step {ident!r}. There are: {known}.", field=key)


def _scripted(entry: Entry, case: Case) -> Entry:
    prompts: dict[str, str] = {}

    def change(value: Any) -> Any:
        if isinstance(value, Model):
            return Model(id="")
        if isinstance(value, Over):
            return replace(value, parallel=1)
        if isinstance(value, FlowStep):
            if isinstance(value.do, PromptDo | MergeDo) and value.do.task:
                prompts[value.do.task] = value.id
            return _step(value, case)
        return value

    changed: Entry = _mapped(entry, change)
    tasks = {
        name: replace(task, prompt=[*task.prompt, _MARK.format(prompts[name])]) if name in prompts else task
        for name, task in changed.tasks.items()
    }
    return replace(changed, tasks=tasks, models=dict.fromkeys(changed.models, ""))


def _step(step: FlowStep, case: Case) -> FlowStep:
    do = step.do
    if step.id in case.run and isinstance(do, RunDo | HttpDo):
        given = case.run[step.id]
        printed = given if isinstance(given, Printed) else Printed(given)
        text = f"{{% raw %}}{_text(printed.output)}{{% endraw %}}"
        exit_codes = do.exit if isinstance(do, RunDo) else [0]
        return replace(
            step, do=RunDo(command=["sh", "-c", _PRINT, "sh", str(printed.exit)], stdin=text, exit=exit_codes)
        )
    if isinstance(do, AskDo):
        return replace(step, do=replace(do, question=do.question + _MARK.format(step.id), people=[]))
    return replace(step, do=WaitDo(seconds=0)) if isinstance(do, WaitDo) else step


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    if not isinstance(value, Struct):
        return value
    inner = {name: _mapped(getattr(value, name), change) for name in value.__struct_fields__}
    return change(replace(value, **inner))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# -- the agent and the person --------------------------------------------------------------------------------------


class _CaseAgent(PlayAgent):
    def __init__(self, case: Case) -> None:
        super().__init__(_unused, id="scripted")
        self.case = case
        self.turns: Counter[str] = Counter()

    async def open(self, opening: Opening) -> PlayConversation:
        return _CaseConversation(self, Path(opening.cwd))


async def _unused(message: Message, turn: Turn) -> None:
    raise AssertionError


class _CaseConversation(PlayConversation):
    def __init__(self, agent: _CaseAgent, folder: Path) -> None:
        super().__init__(agent)
        self._case = agent
        self._folder = folder
        self._step = ""

    async def send(self, message: Message, turn: Turn) -> None:
        if found := _MARKED.findall(message.text):
            self._step = found[-1]
        reaction = _reaction(self._case.case, self._step, self._case.turns[self._step])
        self._case.turns[self._step] += 1
        if reaction.fail:
            raise RuntimeError(reaction.fail)
        await turn.session.captures.ready(turn.id)  # what it writes counts as its change
        for name, text in reaction.write.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        turn.text(_text(reaction.say) or "Done.")


def _reaction(case: Case, step: str, number: int) -> Reaction:
    given = case.agent.get(step, "")
    chosen = given[min(number, len(given) - 1)] if isinstance(given, list) and given else given
    return chosen if isinstance(chosen, Reaction) else Reaction(chosen or "")


async def _answer(host: Host, case: Case) -> None:
    """Answer each question as the case says; one without an answer in the case gets the first choice."""
    asked: Counter[str] = Counter()
    async for records in host.log.follow():
        for record in records:
            event = record.event
            if not isinstance(event, e.QuestionAsked):
                continue
            step = (_MARKED.findall(event.text) or [""])[-1]
            given = case.answers.get(step, "yes")
            text = given if isinstance(given, str) else given[min(asked[step], len(given) - 1)]
            asked[step] += 1
            session = await host.get(host.session_of(event.question))
            await session.questions.answer(event.question, "accept", {"answer": text}, by="token:case")


# -- what came out -------------------------------------------------------------------------------------------------


def _compared(case: Case, state: JobState) -> CaseResult:
    expected, summary = case.expect, state.summary
    steps = [row.step for row in rows_of(state)]
    wrong = []
    if summary.status != expected.outcome:
        why = f" ({summary.error})" if summary.error else ""
        wrong.append(f"outcome: expected {expected.outcome}, was {summary.status}{why}")
    if expected.error and expected.error not in summary.error:
        wrong.append(f"error: expected a text with {expected.error!r}, was {summary.error!r}")
    if expected.steps is not None and steps != expected.steps:
        wrong.append(f"steps: expected {', '.join(expected.steps)}, were {', '.join(steps)}")
    if expected.result is not UNSET and summary.result != expected.result:
        wrong.append(f"result: expected {_text(expected.result)!r}, was {_text(summary.result)!r}")
    context = context_at(state, ROOT, summary.cwd)
    for name, value in expected.values.items():
        found = evaluate(f"{{{{ {name} }}}}", context)
        if found != value:
            wrong.append(f"{name}: expected {_text(value)!r}, was {_text(found)!r}")
    return CaseResult(case.name, not wrong, wrong, steps)
