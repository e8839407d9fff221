"""Validate a plan and the scopes of its runs. Checked when it is written, and again by the command that it starts."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from portico import limits
from portico.features.automations.events import (
    After,
    AutomationPlan,
    FilesTrigger,
    Hook,
    JobAction,
    PromptAction,
    Trigger,
)
from portico.features.automations.schedule import check_schedule, moment
from portico.features.automations.triggers import hooks_of, schedules_of, triggers_of
from portico.features.jobs.jobs import Jobs, NoEntry, check_job
from portico.features.jobs.step import Flow
from portico.features.jobs.workflow.files import find_workflow, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs, secrets_of
from portico.kernel import commands as c
from portico.kernel import fallback
from portico.kernel import limits as kernel_limits
from portico.kernel.autonomy import SANDBOX, Answering, loosened
from portico.kernel.config import check as check_config
from portico.kernel.errors import BadRequest, Forbidden, NotFound
from portico.kernel.folder_access import check_reach
from portico.kernel.folders import check_folder

if TYPE_CHECKING:
    from portico.kernel.host import Host

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_TRIGGERS = ("schedule", "hook", "files", "after")
_COUNTS = {
    "missed_limit": (1, limits.MISSED_RUNS),
    "parallel": (1, 100),
    "stop_after_failures": (0, 1_000),
    "stop_after_runs": (0, 1_000_000),
    "keep_days": (1, 3650),
    "keep_runs": (1, 10_000),
}


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        words = f"{name!r} is no name: 1 to 64 lower case letters, digits and hyphens, such as 'morning-review'."
        raise BadRequest(words, field="name")
    return name


def check_plan(plan: AutomationPlan, host: "Host", jobs: Jobs | None, name: str) -> None:
    _one_of(plan, ("job", "prompt"), "what to start", required=True)
    for field, (least, most) in _COUNTS.items():
        if not least <= getattr(plan, field) <= most:
            raise BadRequest(f"{field} is a number from {least} to {most}.", field=field)
    if len(plan.title) > kernel_limits.TITLE_CHARS:
        raise BadRequest(f"A title has at most {kernel_limits.TITLE_CHARS} characters.", field="title")
    _check_triggers(plan, host, name)
    if plan.stop_at:
        moment(plan.stop_at, zone(plan), "stop_at")
    if plan.job is not None:
        _check_job(plan, plan.job, jobs, host)
    if plan.prompt is not None:
        _check_prompt(plan.prompt, host)
    _check_where(plan, host)


def _check_triggers(plan: AutomationPlan, host: "Host", name: str) -> None:
    _one_of(plan, _TRIGGERS, "a trigger", required=False)
    if plan.on and (given := next((each for each in _TRIGGERS if getattr(plan, each) is not None), "")):
        raise BadRequest(f"With 'on' the trigger {given!r} is one of its list: move it there.", field=given)
    if len(plan.on) > limits.TRIGGERS:
        raise BadRequest(f"An automation has at most {limits.TRIGGERS} triggers.", field="on")
    for index, trigger in enumerate(triggers_of(plan)):
        where = f"on[{index}]." if plan.on else ""
        if plan.on:
            _one_of(trigger, _TRIGGERS, "a trigger", required=True, where=where)
        if trigger.schedule is not None:
            check_schedule(trigger.schedule, host.now(), f"{where}schedule")
        if trigger.hook is not None:
            _check_hook(trigger.hook, f"{where}hook")
        if trigger.files is not None:
            _check_files(trigger.files, f"{where}files")
        if trigger.after is not None:
            _check_after(trigger.after, name, f"{where}after")


def _check_where(plan: AutomationPlan, host: "Host") -> None:
    """Which hosts there are is known when it starts; alone, a host has no other place."""
    action = plan.job or plan.prompt
    assert action is not None
    label = action.label and (action is plan.prompt or action.label not in host.members.labels)
    if not host.members.several and (action.place or label):
        field = f"{'job' if action is plan.job else 'prompt'}.{'place' if action.place else 'label'}"
        raise BadRequest("This host is alone on its log: leave 'place' and 'label' out.", field=field)


def zone(plan: AutomationPlan) -> str:
    """The zone of times that belong to no schedule: that of the first one."""
    return schedules_of(plan)[0].zone if schedules_of(plan) else "UTC"


def _one_of(
    part: AutomationPlan | Trigger, names: tuple[str, ...], what: str, *, required: bool, where: str = ""
) -> None:
    given = [name for name in names if getattr(part, name) is not None]
    choices = ", ".join(map(repr, names))
    owner = "Each item of 'on'" if where else "An automation"
    if len(given) > 1:
        more = "" if where or names != _TRIGGERS else " Write several triggers as the list 'on'."
        words = f"{owner} has one of {choices}; here are {len(given)}.{more}"
        raise BadRequest(words, field=f"{where}{given[1]}")
    if required and not given:
        raise BadRequest(f"{owner} needs {what}: one of {choices}.", field=f"{where}{names[0]}")


def _check_hook(hook: Hook, field: str) -> None:
    if not 1 <= hook.per_minute <= limits.HOOKS_PER_MINUTE:
        raise BadRequest(f"per_minute is 1 to {limits.HOOKS_PER_MINUTE}.", field=f"{field}.per_minute")
    for index, each in enumerate(hook.filter):
        where = f"{field}.filter[{index}]"
        if each.pointer and not each.pointer.startswith("/"):
            raise BadRequest(f"{each.pointer!r} is no JSON Pointer: it begins with a slash.", field=f"{where}.pointer")
        if (each.equals is None) is (not each.matches):
            raise BadRequest("A filter has exactly one of 'equals' and 'matches'.", field=where)
        try:
            re.compile(each.matches)
        except (re.error, RecursionError, OverflowError) as error:
            raise BadRequest(f"{each.matches!r} is no regular expression: {error}.", field=f"{where}.matches") from None


def _check_files(files: FilesTrigger, field: str) -> None:
    check_folder(folder_of(files.folder), f"{field}.folder")
    if not 0.05 <= files.quiet <= 3600:
        raise BadRequest("quiet is 0.05 to 3600 seconds.", field=f"{field}.quiet")
    for name in ("globs", "excludes"):
        for glob in getattr(files, name):
            if glob.startswith("/") or ".." in glob.split("/"):
                raise BadRequest(f"{glob!r}: globs are relative to the folder.", field=f"{field}.{name}")


def _check_after(after: After, name: str, field: str) -> None:
    if bool(after.automation) is bool(after.job):
        raise BadRequest("It comes after exactly one of 'automation' and 'job'.", field=field)
    if after.automation == name:
        raise BadRequest("An automation cannot come after itself.", field=f"{field}.automation")


def _check_job(plan: AutomationPlan, action: JobAction, jobs: Jobs | None, host: "Host") -> None:
    if action.cwd:
        check_folder(folder_of(action.cwd), "job.cwd")
    workflow = find_workflow(Path(folder_of(action.cwd) or host.default_folder()), action.job)
    if workflow is not None:
        _check_inputs(plan, action, load_workflow(workflow).jobs[action.job].flow)
        return
    if action.inputs:
        raise BadRequest(f"The job {action.job!r} is no workflow, so it has no inputs.", field="job.inputs")
    _check_entry_job(plan, action, jobs)


def _check_inputs(plan: AutomationPlan, action: JobAction, flow: Flow | None) -> None:
    """Check the inputs of a workflow. A hook fills those with `from`, and whoever starts it by hand gives the text."""
    assert flow is not None
    given = dict(action.inputs)
    texts = [name for name, each in flow.inputs.items() if each.type == "text" and name not in given]
    if action.input and texts:
        given[texts[0]] = action.input
    open_later = {name for name, each in flow.inputs.items() if hooks_of(plan) and each.pointer}
    if triggers_of(plan) == [Trigger()]:
        open_later |= set(texts[:1])
    for name in secrets_of(flow.inputs):
        if given.get(name) or flow.inputs[name].needed:
            words = f"The input {name!r} of {action.job!r} is a secret, and an automation would store it in the log."
            raise BadRequest(f"{words} Use 'portico secrets set NAME', and 'secrets' in the step.", field="job.inputs")
    spec = {name: each for name, each in flow.inputs.items() if name in given or name not in open_later}
    try:
        check_inputs(spec, given)
    except BadRequest as error:
        raise BadRequest(error.message, field="job.inputs") from None


def _check_entry_job(plan: AutomationPlan, action: JobAction, jobs: Jobs | None) -> None:
    try:
        if jobs is not None:
            check_job(jobs.entry, action.job, jobs.entry_name)
    except (NotFound, NoEntry) as error:
        raise BadRequest(error.message, field="job.job") from None
    _check_input(plan, jobs)


def _check_input(plan: AutomationPlan, jobs: Jobs | None) -> None:
    """Check the input. A manual run has its own input; a trigger has only the input of the plan."""
    action = plan.job
    assert action is not None
    triggered = triggers_of(plan) != [Trigger()]
    if jobs is not None and triggered and not action.input and jobs.entry.jobs[action.job].require_user_input:
        raise BadRequest(f"The job {action.job!r} needs input from its user.", field="job.input")


def _check_prompt(action: PromptAction, host: "Host") -> None:
    if not action.text.strip():
        raise BadRequest("A prompt says something.", field="prompt.text")
    if len(action.text.encode()) > kernel_limits.MESSAGE_BYTES:
        raise BadRequest(f"A prompt has at most {kernel_limits.MESSAGE_BYTES} bytes.", field="prompt.text")
    if action.cwd:
        check_folder(folder_of(action.cwd), "prompt.cwd")
    check_config(action.config)
    if action.agent and action.agent not in host.agents and not fallback.check(action.config):
        names = ", ".join(map(repr, host.agents)) or "none"
        raise BadRequest(f"There is no agent {action.agent!r}. There are: {names}.", field="prompt.agent")


# -- what its runs may do --------------------------------------------------------------------------------------


async def needed_scopes(plan: AutomationPlan, host: "Host", caller: c.Caller) -> list[str]:
    """The scopes that the started command needs. Raises if the caller lacks one: an automation must not have more
    rights than its author."""
    needed = await (_for_job(plan.job, host) if plan.job is not None else _for_prompt(plan.prompt, host))
    for scope in needed:
        if not caller.may(scope):
            words = f"What it starts needs the scope {scope!r}, which the token {caller.name!r} does not have."
            raise Forbidden(words, field="job" if plan.job is not None else "prompt")
    _check_watched(plan, host, caller)
    return list(needed)


def _check_watched(plan: AutomationPlan, host: "Host", caller: c.Caller) -> None:
    """Check the watched folder. The prompt contains names of changed files, so the caller must be able to read it."""
    for index, trigger in enumerate(triggers_of(plan)):
        if trigger.files is None:
            continue
        try:
            check_reach(host, caller, folder_of(trigger.files.folder), "approve", "terminal")
        except Forbidden as error:
            error.field = f"on[{index}].files.folder" if plan.on else "files.folder"
            raise


async def _for_job(action: JobAction, host: "Host") -> list[c.Scope]:
    return ["jobs", "terminal"] if _out_of_reach(host, action.cwd, "terminal") else ["jobs"]


async def _for_prompt(action: PromptAction | None, host: "Host") -> list[c.Scope]:
    assert action is not None
    loose = False
    if action.config:
        agent = action.agent or (await host.readiness.default()).id
        loose = SANDBOX in action.config or bool(loosened(host.agents, None, Answering(agent, action.config)))
    return ["drive", "approve"] if loose or _out_of_reach(host, action.cwd, "approve") else ["drive"]


def folder_of(path: str) -> str:
    """The expanded path. `~` is the home folder of the user that runs the host."""
    return os.path.expanduser(path)


def _out_of_reach(host: "Host", folder: str, scope: c.Scope) -> bool:
    if not folder:
        return False
    try:
        check_reach(host, c.Caller("", "", frozenset({"read"})), folder_of(folder), scope)
    except Forbidden:
        return True
    return False
