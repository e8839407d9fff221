"""An entry as text for terminals: its models, its jobs as trees of works, its grid."""

from collections.abc import Iterator

from portico.jobs.entry import Alt, Ask, Each, Entry, GridRow, Loop, Par, Ref, Seq, Wait, Work, name_of


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
        case Par(concurrency=int() as limit):
            return f"Par (at most {limit} at a time)"
        case Loop(max_iterations=int() as limit):
            return f"Loop (at most {limit} times)"
        case _:
            return type(work).__name__


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
