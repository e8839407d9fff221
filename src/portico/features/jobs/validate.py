"""The rules of an entry, in the order in which they are checked, and their error messages.

`validate_entry` returns a new entry with prompts expanded, works simplified and numbered and `requireUserInput`
filled in. Validating its result again gives the same entry.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count

from msgspec.structs import replace

import portico.features.jobs.entry as n
from portico.features.jobs.prompt import VARIABLE, expand_prompt_static, variables_of
from portico.features.jobs.step import FlowStep
from portico.kernel.errors import BadRequest
from portico.workspace.glob import Glob


def validate_entry(entry: n.Entry, code_path: str = "") -> n.Entry:
    """The entry as the host runs it, or its first mistake as an EntryError whose place begins with `code_path`."""
    root = f"{code_path}entry"
    check_driving(entry.models, entry.driving_session_retries, root)
    _check_grid(entry, root)
    tasks = {name: _task(entry, task, f'{root}.tasks["{name}"]') for name, task in entry.tasks.items()}
    entry = replace(entry, tasks=tasks)
    jobs = {name: _job(entry, job, f'{root}.jobs["{name}"]') for name, job in entry.jobs.items()}
    return replace(entry, jobs=jobs)


def check_driving(models: Mapping[str, str], retries: list[n.DrivingRetry], root: str) -> None:
    """Check that the driving model exists and is the first of its retries."""
    if not models.get("driving"):
        raise n.EntryError(f"{root}.models.driving", "Should exist.")
    if not retries:
        raise n.EntryError(f"{root}.drivingSessionRetries", "Should contain at least one item.")
    if retries[0].model_id != models["driving"]:
        raise n.EntryError(f"{root}.drivingSessionRetries", "The first modelId should equal to entry.models.driving.")


def _check_grid(entry: n.Entry, root: str) -> None:
    for r, row in enumerate(entry.grid):
        for c, cell in enumerate(row.jobs):
            if cell is not None and cell.job_name not in entry.jobs:
                raise n.EntryError(f"{root}.grid[{r}].jobs[{c}].jobName", f'"{cell.job_name}" is not a valid job name.')


def _check_category(entry: n.Entry, model: n.Model | None, base: str) -> None:
    if model is None or model.category is None:
        return
    # `reviewers` once named a list of models, so it never names one.
    if model.category not in entry.models or model.category == "reviewers":
        raise n.EntryError(f"{base}.category", f'"{model.category}" is not a valid model key.')


def _task(entry: n.Entry, task: n.Task, base: str) -> n.Task:
    _check_category(entry, task.model, f"{base}.model")
    prompt = expand_prompt_static(entry, f"{base}.prompt", task.prompt)
    uses_input = "user-input" in variables_of(prompt[0])
    if task.require_user_input != uses_input:
        needed, given = ("should", "true") if task.require_user_input else ("should not", "false")
        raise n.EntryError(
            f"{base}.requireUserInput", f"Prompt {needed} use $user-input when requireUserInput is {given}."
        )
    availability = task.availability
    if availability is not None:
        condition = _condition(entry, f"{base}.availability.condition", availability.condition)
        availability = replace(availability, condition=condition)
    criteria = task.criteria and _criteria(entry, task.criteria, f"{base}.criteria")
    if task.output is not None:
        _check_output(entry, task.output, f"{base}.output")
    for i, model in enumerate(task.fallback):
        _check_category(entry, model, f"{base}.fallback[{i}]")
    return replace(task, prompt=prompt, availability=availability, criteria=criteria)


def _check_output(entry: n.Entry, output: n.Output, base: str) -> None:
    if VARIABLE.fullmatch(f"${output.name}") is None:
        raise n.EntryError(f"{base}.name", f'"{output.name}" should be letters, with "-" between words.')
    if output.name in (*n.RUNTIME_VARIABLES, n.ANSWER, n.ITEM) or output.name in entry.prompt_variables:
        raise n.EntryError(f"{base}.name", f'"{output.name}" is a variable already.')
    if output.schema is not None:
        _check_schema(n.SchemaCheck(schema=output.schema), base)


def _condition(entry: n.Entry, code_path: str, condition: n.Prompt | None) -> n.Prompt | None:
    if condition is None:
        return None
    return expand_prompt_static(entry, code_path, condition, requires_boolean_tool=True)


def _criteria(entry: n.Entry, criteria: n.Criteria, base: str) -> n.Criteria:
    for i, tool in enumerate(criteria.tool_executed or ()):
        if tool not in n.JOB_TOOLS:
            raise n.EntryError(f"{base}.toolExecuted[{i}]", f'"{tool}" is not an available tool.')
    condition = _condition(entry, f"{base}.condition", criteria.condition)
    action = _failure_action(entry, criteria.failure_action, f"{base}.failureAction")
    _check_command(criteria.command, f"{base}.command")
    checks = [_check(entry, check, f"{base}.checks[{i}]") for i, check in enumerate(criteria.checks)]
    return replace(criteria, condition=condition, failure_action=action, checks=checks)


def _check(entry: n.Entry, check: n.Check, base: str) -> n.Check:
    _check_command(check.command, f"{base}.command")
    if check.files is not None:
        _check_files(check.files, f"{base}.files")
    if check.schema is not None:
        _check_schema(check.schema, f"{base}.schema")
    if check.model is not None:
        return replace(check, model=_model_check(entry, check.model, f"{base}.model"))
    if check.person is not None:
        question = expand_prompt_static(entry, f"{base}.person.question", check.person.question)
        return replace(check, person=replace(check.person, question=question))
    return check


def _check_files(files: n.FilesCheck, base: str) -> None:
    if not (files.exist or files.absent or files.changed_only or files.max_changed_lines is not None):
        raise n.EntryError(base, "Should check something.")
    for key, globs in (("exist", files.exist), ("absent", files.absent), ("changedOnly", files.changed_only)):
        for i, glob in enumerate(globs):
            _check_glob(glob, f"{base}.{key}[{i}]")


def _check_glob(glob: str, path: str) -> None:
    if not glob or glob.startswith("/") or ".." in glob.split("/"):
        raise n.EntryError(path, f'"{glob}" should be a path or glob below the working directory.')
    try:
        Glob(glob).matches("x")
    except BadRequest as error:
        raise n.EntryError(path, error.message) from error


def _check_schema(check: n.SchemaCheck, base: str) -> None:
    from jsonschema import Draft202012Validator, SchemaError  # late: few entries have one

    if check.file is not None:
        _check_glob(check.file, f"{base}.file")
    try:
        Draft202012Validator.check_schema(check.schema)
    except SchemaError as error:
        raise n.EntryError(f"{base}.schema", f"Is not a JSON Schema: {error.message}.") from error


def _model_check(entry: n.Entry, check: n.ModelCheck, base: str) -> n.ModelCheck:
    for i, judge in enumerate(check.judges):
        _check_category(entry, judge, f"{base}.judges[{i}]")
    judges = max(1, len(check.judges))
    if check.quorum is not None and check.quorum > judges:
        raise n.EntryError(
            f"{base}.quorum", f"Should be at most {judges}, the number of judges, but is {check.quorum}."
        )
    condition = _condition(entry, f"{base}.condition", check.condition)
    assert condition is not None
    return replace(check, condition=condition)


def _failure_action(entry: n.Entry, action: n.FailureAction, base: str) -> n.FailureAction:
    if action.additional_prompt is None:
        return action
    prompt = expand_prompt_static(entry, f"{base}.additionalPrompt", action.additional_prompt)
    return replace(action, additional_prompt=prompt)


def _check_command(command: str | list[str] | None, path: str) -> None:
    if command is None:
        return
    program = command if isinstance(command, str) else "".join(command[:1])
    if not program.strip():
        raise n.EntryError(path, "Should name a program.")
    if any("\0" in word for word in command):
        raise n.EntryError(path, "Should not contain a NUL character.")


def _job(entry: n.Entry, job: n.Job, base: str) -> n.Job:
    work = assign_work_ids(simplify(job.work))
    _check_work(entry, work, f"{base}.work")
    work = _expanded(entry, work, f"{base}.work")
    needed = any(_needs_input(entry, leaf) for leaf in n.leaves_of(work))
    if job.require_user_input is not None and job.require_user_input != needed:
        raise n.EntryError(
            f"{base}.requireUserInput",
            f"Should be {_word(needed)} but is {_word(job.require_user_input)}.",
        )
    return replace(job, work=work, require_user_input=needed)


def _needs_input(entry: n.Entry, leaf: n.Leaf) -> bool:
    match leaf:
        case FlowStep():
            return False
        case n.Ref():
            return entry.tasks[leaf.task_id].require_user_input
        case n.Ask():
            return "user-input" in variables_of(leaf.question[0])
        case n.Wait():
            return False


def _expanded(entry: n.Entry, work: n.Work, path: str) -> n.Work:
    """The work with the prompts of its questions expanded."""

    def change(child: n.Work, key: str) -> n.Work:
        return _expanded(entry, child, path + key)

    work = n.rebuilt(work, change)
    if isinstance(work, n.Ask):
        return replace(work, question=expand_prompt_static(entry, f"{path}.question", work.question))
    return work


def _word(value: bool) -> str:
    return "true" if value else "false"


def _check_work(entry: n.Entry, work: n.Work, path: str) -> None:
    if isinstance(work, n.Ref):
        _check_ref(entry, work, path)
    if isinstance(work, n.Seq | n.Par) and not work.works:
        raise n.EntryError(f"{path}.works", "should have at least one element.")
    if isinstance(work, n.Ask):
        _check_ask(work, path)
    if isinstance(work, n.Wait):
        _check_wait(work, path)
    if isinstance(work, n.Each):
        _check_each(entry, work, path)
    for key, child in n.parts_of(work):
        _check_work(entry, child, path + key)


def _check_ask(ask: n.Ask, path: str) -> None:
    labels = [choice.label for choice in ask.choices]
    for i, label in enumerate(labels):
        if not label.strip():
            raise n.EntryError(f"{path}.choices[{i}].label", "Should say something.")
        if label in labels[:i]:
            raise n.EntryError(f"{path}.choices[{i}].label", f'"{label}" is a choice already.')


def _check_wait(wait: n.Wait, path: str) -> None:
    if sum(each is not None for each in (wait.seconds, wait.until, wait.hook)) != 1:
        raise n.EntryError(path, "Should have exactly one of seconds, until, hook.")
    if wait.hook is not None and re.fullmatch(r"[A-Za-z0-9_-]{1,100}", wait.hook) is None:
        raise n.EntryError(f"{path}.hook", "Should be letters, digits, - and _, at most 100.")
    if wait.until is not None:
        try:
            aware = datetime.fromisoformat(wait.until).tzinfo is not None
        except ValueError:
            aware = False
        if not aware:
            raise n.EntryError(f"{path}.until", f'"{wait.until}" should be a time such as "2027-01-31T09:00:00+01:00".')


def _check_each(entry: n.Entry, each: n.Each, path: str) -> None:
    if sum(source is not None for source in (each.files, each.output, each.items)) != 1:
        raise n.EntryError(path, "Should have exactly one of files, output, items.")
    if each.files is not None:
        _check_glob(each.files, f"{path}.files")
    outputs = {task.output.name for task in entry.tasks.values() if task.output is not None}
    if each.output is not None and each.output not in outputs:
        raise n.EntryError(f"{path}.output", f'"{each.output}" is not the output of a task.')


def _check_ref(entry: n.Entry, ref: n.Ref, path: str) -> None:
    if ref.task_id not in entry.tasks:
        raise n.EntryError(f"{path}.taskId", f'"{ref.task_id}" is not a valid task name.')
    _check_category(entry, ref.model_override, f"{path}.modelOverride")
    if ref.model_override is None and entry.tasks[ref.task_id].model is None:
        raise n.EntryError(
            f"{path}.modelOverride", f'must be defined because task "{ref.task_id}" has no specified model.'
        )


def simplify(work: n.Work) -> n.Work:
    """Flatten Seq in Seq and Par in Par at every level."""
    work = n.rebuilt(work, lambda child, _: simplify(child))
    if isinstance(work, n.Seq | n.Par):
        return replace(work, works=[part for child in work.works for part in _inner(child, type(work))])
    return work


def _inner(work: n.Work, outer: type[n.Seq] | type[n.Par]) -> list[n.Work]:
    """The works to put into an `outer` in place of this one."""
    match work:
        case n.Seq() if outer is n.Seq:
            return work.works
        case n.Par(concurrency=None) if outer is n.Par:
            # A Par with its own limit is kept: its limit would be lost in the outer one.
            return work.works
        case _:
            return [work]


def assign_work_ids(work: n.Work) -> n.Work:
    """Number the tasks from 0, depth first; in a Loop the conditions come before the body."""
    return _numbered(work, count())


def _numbered(work: n.Work, ids: Iterator[int]) -> n.Work:
    if isinstance(work, n.Ref | n.Ask | n.Wait):
        work = replace(work, work_id_in_job=next(ids))
    return n.rebuilt(work, lambda child, _: _numbered(child, ids))
