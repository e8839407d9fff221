"""What a run of a workflow would do, before it costs anything: `portico run NAME --plan`.

Inputs are filled in. Values of steps are not known yet, so expressions with them stay as they are written.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from portico.features.jobs.entry import Again, Branches, Entry, If, Over, Seq, Task, Work
from portico.features.jobs.step import AskDo, CallDo, Do, FlowStep, HttpDo, PromptDo, RunDo, WaitDo
from portico.features.jobs.workflow.inputs import shown_inputs
from portico.features.jobs.workflow.template import evaluate, text_of
from portico.kernel.errors import PorticoError

DEFAULT_AGENT = "the first agent of the host"
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_SHOWN_CHARS = 100
"""Of a command or a prompt in the printed tree."""


class PlannedStep(Struct, omit_defaults=True):
    id: str
    name: str
    kind: str
    inside: list[str] = []
    """The control flow around it, from the outermost."""
    text: str = ""
    """The prompt, command, question or address."""
    agent: str = ""
    asks: bool = False
    """A person is asked."""
    session: str = ""
    """The step whose session it continues."""
    at: str = ""
    """The commit at which it works."""
    checks: int = 0
    secrets: list[str] = []
    sandbox: Any = None
    timeout: float | None = None


class PlannedJob(Struct, omit_defaults=True):
    job: str
    about: str
    inputs: dict[str, Any]
    folder: str
    branch: str
    budget: dict[str, Any]
    agents: dict[str, int]
    """The number of prompt steps for each agent."""
    asks: list[str]
    """The ids of steps that ask a person."""
    secrets: list[str]
    timeout: float | None
    steps: list[PlannedStep]


def preview(entry: Entry, name: str, inputs: dict[str, Any]) -> PlannedJob:
    job = entry.jobs[name]
    flow = job.flow
    assert flow is not None
    now = datetime.now(UTC)
    inputs = shown_inputs(flow.inputs, inputs)
    run = {
        "date": now.date().isoformat(),
        "scheduled_at": now.isoformat(timespec="seconds"),
        "attempt": 1,
        "name": name,
    }
    steps = list(_steps(job.work, entry.tasks, {"inputs": inputs, "run": run}, []))
    worktree = flow.folder == "worktree"
    return PlannedJob(
        job=name,
        about=flow.about,
        inputs=inputs,
        folder=flow.folder,
        branch=_filled(flow.branch or f"portico/{name}/ID", {"inputs": inputs, "run": run}) if worktree else "",
        budget={key: value for key, value in msgspec.to_builtins(job.budget).items() if value is not None},
        agents=dict(Counter(each.agent for each in steps if each.agent)),
        asks=[each.id for each in steps if each.asks],
        secrets=sorted({name for each in steps for name in each.secrets}),
        timeout=job.timeout,
        steps=steps,
    )


def _steps(work: Work, tasks: dict[str, Task], context: dict[str, Any], inside: list[str]) -> Iterator[PlannedStep]:
    match work:
        case FlowStep():
            yield _step(work, tasks, context, inside)
        case Seq():
            for each in work.works:
                yield from _steps(each, tasks, context, inside)
        case If():
            around = inside if work.when is None else [*inside, f"if {_filled(work.when, context)}"]
            yield from _steps(work.then, tasks, context, around)
            if work.otherwise is not None:
                yield from _steps(work.otherwise, tasks, context, [*around, "else"])
        case Again():
            until = f", until {_filled(work.until, context)}" if work.until is not None else ""
            yield from _steps(work.body, tasks, context, [*inside, f"loop (at most {work.most} rounds{until})"])
        case Over():
            yield from _over(work, tasks, context, inside)
        case Branches():
            for number, each in enumerate(work.works):
                branch = work.names[number] if number < len(work.names) else str(number + 1)
                yield from _steps(each, tasks, context, [*inside, f"at the same time: {branch}{_folder(work)}"])


def _over(work: Over, tasks: dict[str, Task], context: dict[str, Any], inside: list[str]) -> Iterator[PlannedStep]:
    items = text_of(work.each) if not isinstance(work.each, str) else _filled(work.each, context)
    many = f", {work.parallel} at a time" if work.parallel > 1 else ""
    around = [*inside, f"each {work.item} of {items}{many}{_folder(work)}"]
    yield from _steps(work.body, tasks, context, around)


def _folder(work: Over | Branches) -> str:
    return ", in a separate folder" if work.folder == "worktree" else ""


def _step(step: FlowStep, tasks: dict[str, Task], context: dict[str, Any], inside: list[str]) -> PlannedStep:
    task = tasks.get(step.do.task) if isinstance(step.do, PromptDo) else None
    checks = task.criteria.checks if task is not None and task.criteria is not None else []
    return PlannedStep(
        id=step.id,
        name=_filled(step.name, context),
        kind=str(step.do.__struct_config__.tag),
        inside=inside,
        text=_filled(_text(step.do, task), context, quote=isinstance(step.do, RunDo)),
        agent=(task.model.label or DEFAULT_AGENT) if task is not None and task.model is not None else "",
        asks=isinstance(step.do, AskDo) or any(each.person is not None for each in checks),
        session=step.do.session if isinstance(step.do, PromptDo) and step.do.same else "",
        at=_filled(step.at, context),
        checks=len(checks),
        secrets=step.secrets,
        sandbox=step.sandbox,
        timeout=step.timeout,
    )


def _text(do: Do, task: Task | None) -> str:
    match do:
        case PromptDo():
            return "\n".join(task.prompt) if task is not None else ""
        case RunDo():
            return do.command if isinstance(do.command, str) else " ".join(do.command)
        case HttpDo():
            return f"{do.method} {do.url}"
        case AskDo():
            return do.question
        case WaitDo():
            seconds = f"{do.seconds:g}" if isinstance(do.seconds, float | int) else do.seconds
            return f"for the hook {do.hook}" if do.hook else f"until {do.until}" if do.until else f"{seconds} seconds"
        case CallDo():
            return do.job
        case _:
            return ""


def _filled(text: str, context: dict[str, Any], *, quote: bool = False) -> str:
    """With the expressions that are known before the run. In commands each value is one argument."""

    def value(found: re.Match[str]) -> str:
        try:
            known = text_of(evaluate(found[0], context))
            return shlex.quote(known) if quote else known
        except PorticoError:
            return found[0]

    return _EXPRESSION.sub(value, text)


# -- as text -------------------------------------------------------------------------------------------------------


def draw_plan(plan: PlannedJob) -> str:
    lines = [f"Job {plan.job}" + (f": {plan.about}" if plan.about else "")]
    lines += [f"  input {name}: {text_of(value) or '(empty)'}" for name, value in plan.inputs.items()]
    folder = f"a separate folder with the branch {plan.branch}" if plan.branch else "the project, shared with you"
    agents = ", ".join(f"{name} ({count} step{'s' * (count > 1)})" for name, count in plan.agents.items())
    budget = ", ".join(f"{value:g} {name}" for name, value in plan.budget.items())
    facts = {
        "folder": folder,
        "agents": agents or "none",
        "budget": budget or "none",
        "asks a person": ", ".join(plan.asks) or "never",
        "secrets": ", ".join(plan.secrets) or "none",
        "timeout": f"{plan.timeout:g} seconds" if plan.timeout is not None else "none",
    }
    lines += [f"  {name}: {text}" for name, text in facts.items()]
    before: list[str] = []
    for step in plan.steps:
        shared = next((n for n, (a, b) in enumerate(zip(before, step.inside, strict=False)) if a != b), None)
        same = min(len(before), len(step.inside)) if shared is None else shared
        lines += [f"  {'  ' * depth}{step.inside[depth]}:" for depth in range(same, len(step.inside))]
        lines.append(f"  {'  ' * len(step.inside)}- {_line(step)}")
        before = step.inside
    return "\n".join(lines)


def _line(step: PlannedStep) -> str:
    text = " ".join(step.text.split())
    shown = text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
    notes = [step.agent, f"{step.checks} check{'s' * (step.checks > 1)}" if step.checks else ""]
    notes += [f"in the session of {step.session}" if step.session else "", f"at {step.at}" if step.at else ""]
    notes += ["asks" if step.asks else "", f"secrets {', '.join(step.secrets)}" if step.secrets else ""]
    notes += [f"sandbox {text_of(step.sandbox)}" if step.sandbox else ""]
    about = f" ({'; '.join(filter(None, notes))})" if any(notes) else ""
    name = f"{step.name}: " if step.name and step.name != text else ""
    return f"{step.kind} {step.id}{about} {name}{shown}".rstrip()
