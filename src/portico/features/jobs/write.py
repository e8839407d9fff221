"""Writing an entry in Python: the same Entry as from a file, with names that the editor completes.

    write = task("write", "Write about $user-input.", model="coding", require_user_input=True)
    review = task("review", "Review it.", condition="Call job_boolean_true if it is good.")
    tasks = entry(
        models={"driving": "gpt-5-mini", "coding": "gpt-5.2"},
        jobs={"article": seq(write, loop(write, post=(False, review.on("driving"))))},
        grid=[("write", [("an article", "article")])],
    )

Works carry the tasks they use, so a task is written once and needs no list.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import portico.features.jobs.entry as n
from portico.features.jobs.load import load_entry
from portico.sandbox.policy import Mode

Lines = str | Sequence[str]
Cell = str | tuple[str, str] | None


class Draft(Struct, frozen=True):
    """A work together with the tasks it uses."""

    work: n.Work
    tasks: dict[str, n.Task]


class TaskDraft(Draft, frozen=True):
    """A task, used as a work."""

    work: n.Ref

    def on(self, category: str | None = None, *, id: str | None = None) -> "TaskDraft":
        """The same task on another model: one of the entry's categories, or a literal id."""
        return TaskDraft(replace(self.work, model_override=n.Model(category=category, id=id)), self.tasks)


class JobDraft(Struct, frozen=True):
    draft: Draft
    require_user_input: bool | None = None
    timeout: float | None = None


def task(
    name: str,
    *prompt: str,
    model: str | n.Model | None = None,
    fallback: Sequence[str | n.Model] = (),
    require_user_input: bool = False,
    available: Lines | None = None,
    tools: Sequence[str] = (),
    condition: Lines | None = None,
    same_session: bool = True,
    command: Lines | None = None,
    retries: int = n.DEFAULT_CRITERIA_RETRIES,
    retry_prompt: Lines | None = None,
    on_interrupt: n.OnInterrupt = "retry",
    timeout: float | None = None,
    label: str = "",
    sandbox: Mode | None = None,
) -> TaskDraft:
    """A task. `model` is a category of the entry or a Model, and so is each of `fallback`; `tools`, `condition` and
    `command` are its criteria."""
    criteria = None
    if tools or condition is not None or command is not None:
        criteria = n.Criteria(
            tool_executed=list(tools) or None,
            condition=_prompt(condition),
            run_condition_in_same_session=None if condition is None else same_session,
            command=command if command is None or isinstance(command, str) else list(command),
            failure_action=n.FailureAction(retry_times=retries, additional_prompt=_prompt(retry_prompt)),
        )
    definition = n.Task(
        model=n.Model(category=model) if isinstance(model, str) else model,
        fallback=[n.Model(category=each) if isinstance(each, str) else each for each in fallback],
        prompt=list(prompt),
        require_user_input=require_user_input,
        availability=None if available is None else n.Availability(condition=_prompt(available)),
        criteria=criteria,
        on_interrupt=on_interrupt,
        timeout=timeout,
        label=label,
        sandbox=sandbox,
    )
    return TaskDraft(n.Ref(task_id=name), {name: definition})


def seq(*works: Draft) -> Draft:
    """One after the other."""
    return Draft(n.Seq(works=[part.work for part in works]), _tasks(works))


def par(*works: Draft, concurrency: int | None = None) -> Draft:
    """Run works concurrently, at most `concurrency` at a time."""
    return Draft(n.Par(works=[part.work for part in works], concurrency=concurrency), _tasks(works))


def loop(
    body: Draft,
    *,
    pre: tuple[bool, Draft] | None = None,
    post: tuple[bool, Draft] | None = None,
    max_iterations: int | None = None,
) -> Draft:
    """The body again and again, as long as `post` gives its expected result; not at all if `pre` does not."""
    conditions = [condition[1] for condition in (pre, post) if condition is not None]
    work = n.Loop(
        pre_condition=pre and (pre[0], pre[1].work),
        post_condition=post and (post[0], post[1].work),
        body=body.work,
        max_iterations=max_iterations,
    )
    return Draft(work, _tasks([*conditions, body]))


def alt(condition: Draft, then: Draft | None = None, otherwise: Draft | None = None) -> Draft:
    """One branch or the other."""
    branches = [branch for branch in (then, otherwise) if branch is not None]
    work = n.Alt(
        condition=condition.work,
        true_work=None if then is None else then.work,
        false_work=None if otherwise is None else otherwise.work,
    )
    return Draft(work, _tasks([condition, *branches]))


def job(work: Draft, *, require_user_input: bool | None = None, timeout: float | None = None) -> JobDraft:
    """A work with the settings of a job; without any, the work alone will do."""
    return JobDraft(work, require_user_input, timeout)


def entry(
    *,
    models: Mapping[str, str],
    jobs: Mapping[str, Draft | JobDraft],
    grid: Sequence[tuple[str, Sequence[Cell]]] = (),
    tasks: Sequence[TaskDraft] = (),
    variables: Mapping[str, Lines] | None = None,
    retries: Sequence[tuple[str, int]] | None = None,
    code_path: str = "",
) -> n.Entry:
    """The validated entry. `tasks` adds tasks that no job uses; a cell is a job name, (text, job name) or None."""
    drafts = {name: each if isinstance(each, JobDraft) else JobDraft(each) for name, each in jobs.items()}
    if retries is None:
        retries = [(models["driving"], n.DEFAULT_CRITERIA_RETRIES)] if "driving" in models else []
    written = n.Entry(
        models=dict(models),
        driving_session_retries=[n.DrivingRetry(model_id=model, retries=times) for model, times in retries],
        prompt_variables={name: _lines(lines) for name, lines in (variables or {}).items()},
        tasks=_tasks([*tasks, *(draft.draft for draft in drafts.values())], code_path),
        jobs={name: _job(draft) for name, draft in drafts.items()},
        grid=[n.GridRow(keyword=keyword, jobs=[_cell(cell) for cell in cells]) for keyword, cells in grid],
    )
    # Use the reader, so that a wrong value gives the same error as in a file.
    return load_entry(msgspec.to_builtins(written), code_path)


def _job(draft: JobDraft) -> n.Job:
    return n.Job(work=draft.draft.work, require_user_input=draft.require_user_input, timeout=draft.timeout)


def _cell(cell: Cell) -> n.GridColumn | None:
    if cell is None:
        return None
    name, job_name = (cell, cell) if isinstance(cell, str) else cell
    return n.GridColumn(name=name, job_name=job_name)


def _lines(lines: Lines) -> n.Prompt:
    return [lines] if isinstance(lines, str) else list(lines)


def _prompt(lines: Lines | None) -> n.Prompt | None:
    return None if lines is None else _lines(lines)


def _tasks(drafts: Sequence[Draft], code_path: str = "") -> dict[str, n.Task]:
    """All tasks of the drafts, in order of first use."""
    tasks: dict[str, n.Task] = {}
    for draft in drafts:
        for name, definition in draft.tasks.items():
            if tasks.setdefault(name, definition) != definition:
                raise n.EntryError(f'{code_path}entry.tasks["{name}"]', "Two different tasks have this name.")
    return tasks
