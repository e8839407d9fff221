"""An entry as text for terminals: its models, its jobs as trees of works, its grid."""

from collections.abc import Iterator

from portico.features.jobs.entry import (
    Again,
    Alt,
    Ask,
    Branches,
    Each,
    Entry,
    GridRow,
    If,
    Loop,
    Over,
    Par,
    Ref,
    Seq,
    Wait,
    Work,
    name_of,
)
from portico.features.jobs.step import FlowStep
from portico.features.jobs.workflow.template import text_of


def draw_entry(entry: Entry) -> str:
    """Render a validated entry as text."""
    lines = ["Models"]
    lines += [_printable(f"  {category}: {model}") for category, model in entry.models.items()]
    for name, job in entry.jobs.items():
        lines += ["", _printable(f"Job {name}") + (" (needs user input)" if job.require_user_input else "")]
        lines.append(draw_tree(job.work, "  "))
    lines += ["", "Grid", *(_row(row) for row in entry.grid)]
    return "\n".join(lines)


def _row(row: GridRow) -> str:
    cells = ("-" if cell is None else f"{cell.name} ({cell.job_name})" for cell in row.jobs)
    return _printable(f"  {row.keyword}: {', '.join(cells)}")


def _printable(text: str) -> str:
    """Replace unprintable characters (escape sequences): names come from a file that others may have written."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def draw_workflow(entry: Entry) -> str:
    """Render the job of a workflow as text: its inputs and its tree."""
    ((name, job),) = entry.jobs.items()
    assert job.flow is not None
    lines = [_printable(f"Job {name}"), *([_printable(f"  {job.flow.about}")] if job.flow.about else [])]
    for key, each in job.flow.inputs.items():
        default = "" if each.default is None else f" [{text_of(each.default)}]"
        about = f": {each.about}" if each.about else ""
        lines.append(_printable(f"  input {key} ({each.type}{', required' if each.needed else ''}){default}{about}"))
    if job.flow.on:
        kinds = ", ".join(dict.fromkeys(kind for each in job.flow.on for kind in each))
        lines.append(_printable(f"  on {kinds}: active after: portico automations apply {name}"))
    return "\n".join([*lines, draw_tree(job.work, "  ")])


def draw_tree(work: Work, indent: str = "") -> str:
    """The work as an indented tree, one line per work, tasks with their ids."""
    lines = [_title(work)]
    children = list(_named_parts(work))
    for index, (name, child) in enumerate(children):
        last = index == len(children) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        head, *rest = draw_tree(child).split("\n")
        lines += [branch + name + head, *(below + line for line in rest)]
    return "\n".join(indent + line for line in lines)


def _title(work: Work) -> str:
    match work:
        case Ref():
            model = f" ({work.model_override.label})" if work.model_override else ""
            return _printable(f"[{work.work_id_in_job}] {work.task_id}{model}")
        case Ask() | Wait():
            word = "ask: " if isinstance(work, Ask) else ""
            return _printable(f"[{work.work_id_in_job}] {word}{name_of(work)}")
        case Each():
            source = work.files or (f"${work.output}" if work.output else f"{len(work.items or [])} items")
            return _printable(f"Each of {source} ({work.concurrency} at a time)")
        case FlowStep():
            return _printable(f"[{work.work_id_in_job}] {work.do.__struct_config__.tag}: {name_of(work)}{_agent(work)}")
        case If():
            return _printable(f"if {work.when}") if work.when is not None else "steps"
        case Again():
            until = f" until {work.until}" if work.until is not None else ""
            return _printable(f"loop{until} (at most {work.most} rounds)")
        case Over():
            where = ", each in a worktree" if work.folder == "worktree" else ""
            return _printable(f"each {work.item} of {work.each} ({work.parallel} at a time{where})")
        case Branches():
            return "parallel" + (" (each in a worktree)" if work.folder == "worktree" else "")
        case Par(concurrency=int() as limit):
            return f"Par (at most {limit} at a time)"
        case Loop(max_iterations=int() as limit):
            return f"Loop (at most {limit} times)"
        case _:
            return type(work).__name__


def _agent(step: FlowStep) -> str:
    words = [f"label {step.label}"] if step.label else []
    words += [f"secrets {', '.join(step.secrets)}"] if step.secrets else []
    return f" ({'; '.join(words)})" if words else ""


def _named_parts(work: Work) -> Iterator[tuple[str, Work]]:
    """The children in the order in which they run, each with its part in the work."""
    match work:
        case Seq() | Par():
            yield from (("", child) for child in work.works)
        case Loop():
            if work.pre_condition is not None:
                yield f"while {str(work.pre_condition[0]).lower()}: ", work.pre_condition[1]
            yield "do: ", work.body
            if work.post_condition is not None:
                yield f"again while {str(work.post_condition[0]).lower()}: ", work.post_condition[1]
        case Alt():
            yield "if: ", work.condition
            if work.true_work is not None:
                yield "true: ", work.true_work
            if work.false_work is not None:
                yield "false: ", work.false_work
        case Ask():
            yield from ((f"{_printable(each.label)}: ", each.work) for each in work.choices if each.work is not None)
        case Each():
            yield "do: ", work.body
        case Over() | Branches():
            yield from (("", child) for child in ([work.body] if isinstance(work, Over) else work.works))
            if work.merge is not None:
                yield "", work.merge
        case Again():
            yield "", work.body
        case If():
            yield "", work.then
            if work.otherwise is not None:
                yield "else: ", work.otherwise
