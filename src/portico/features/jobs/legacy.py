"""The importer of entries written for the API of February 2026 (the 000 format).

That format had no driving retries, tuples as failure actions, grid columns that named their job by `id`, and keys that
were checked but never evaluated. Keys without a meaning are dropped and listed in `notes`.
`import_entry` reads both formats; every place that takes an entry from a user goes through it.
"""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from portico.features.jobs.entry import DEFAULT_CRITERIA_RETRIES, Entry, EntryError
from portico.features.jobs.load import MAX_VALUES, drop_unknown_keys, load_entry, read_file

Data = dict[object, object]

OLD_PLACES = {
    ".criteria.failureAction.retryTimes": ".criteria.failureAction[1]",
    ".criteria.failureAction.additionalPrompt": ".criteria.failureAction[2]",
}


class Imported(NamedTuple):
    entry: Entry
    notes: list[str]
    printed_names: dict[str, str] = {}
    """Display names of jobs in the old format, by job name."""


def import_file(path: Path, code_path: str = "", *, old: bool = False) -> Imported:
    """The validated entry of a `.json`, `.yaml` or `.yml` file in either format."""
    return import_entry(read_file(path), code_path, old=old)


def import_entry(data: object, code_path: str = "", *, old: bool = False) -> Imported:
    """The validated entry of plain data in either format. `old`: its reader speaks the API of that time, and what the
    current format refuses as unknown is dropped with a note."""
    if old or looks_legacy(data):
        return import_legacy(data, code_path)
    return Imported(load_entry(data, code_path), [])


def looks_legacy(data: object) -> bool:
    """Whether plain data is an entry of the old format and not a wrong one of the current format."""
    if not isinstance(data, Mapping):
        return False
    if isinstance(_get(data.get("models"), "reviewers"), list):
        return True
    if "drivingSessionRetries" in data:
        return False
    rows = _items(data.get("grid"))
    columns = [column for row in rows for column in _items(_get(row, "jobs"))]
    actions = [_get(_get(task, "criteria"), "failureAction") for task in _values(data.get("tasks"))]
    return (
        any(_get(row, "automate") is not None for row in rows)
        or any(_get(column, "id") is not None for column in columns)
        or any(_get(job, "printedName") is not None for job in _values(data.get("jobs")))
        or any(isinstance(action, list) for action in actions)
    )


def import_legacy(data: object, code_path: str = "") -> Imported:
    """Translate plain data of the old format into a validated entry."""
    if not isinstance(data, Mapping):
        # The reader has the error message for anything that is not an object.
        return Imported(load_entry(data, code_path), [])
    try:
        importer = _Importer(copy.deepcopy(data), f"{code_path}entry")
        translated = importer.entry()
        unknown = drop_unknown_keys(translated, code_path)
        notes = importer.notes + [f"{path}: Dropped: it is not a key of an entry." for path in unknown]
        return Imported(load_entry(translated, code_path), notes, importer.printed_names)
    except RecursionError:
        raise EntryError(f"{code_path}entry", "Contains itself.") from None
    except EntryError as error:
        raise EntryError(_old_place(error.path), error.text) from error


def _old_place(path: str) -> str:
    """Where the author of the old file finds a mistake."""
    for new, old in OLD_PLACES.items():
        path = path.replace(new, old)
    return path


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _values(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, Mapping) else []


def _mapped(value: object, translate: Callable[[str, object], object]) -> object:
    """An object with its values translated; anything else is left for the reader to reject."""
    return {name: translate(name, each) for name, each in value.items()} if isinstance(value, Mapping) else value


class _Importer:
    """Translates what it recognises and leaves the rest as it is, for the strict reader to check."""

    def __init__(self, data: Mapping[object, object], root: str) -> None:
        self.data = data
        self.root = root
        self.notes: list[str] = []
        self.printed_names: dict[str, str] = {}
        self.works = 0
        self.keywords = [_get(row, "keyword") for row in _items(data.get("grid"))]

    def note(self, path: str, text: str) -> None:
        self.notes.append(f"{self.root}{path}: {text}")

    def entry(self) -> Data:
        models = self.models(self.data.get("models", {}))
        if isinstance(models, dict) and models and "driving" not in models:
            name, chosen = next(iter(models.items()))
            models = {**models, "driving": chosen}
            self.note(".models.driving", f"It was not there; {name!r} drives now.")
        driving = _get(models, "driving")
        retries = [{"modelId": driving, "retries": DEFAULT_CRITERIA_RETRIES}] if driving else []
        translated: Data = {
            **self.data,
            "models": models,
            "drivingSessionRetries": self.data.get("drivingSessionRetries", retries),
            "tasks": _mapped(self.data.get("tasks", {}), self.task),
            "jobs": _mapped(self.data.get("jobs", {}), self.job),
        }
        if isinstance(self.data.get("grid"), list):
            translated["grid"] = [self.row(r, row) for r, row in enumerate(_items(self.data["grid"]))]
        return translated

    def models(self, models: object) -> object:
        """`reviewers` was a list; it becomes reviewers1, reviewers2 and so on."""
        if not isinstance(models, Mapping) or not isinstance(models.get("reviewers"), list):
            return models
        empty = not models["reviewers"]
        text = "Dropped: the list is empty." if empty else "A list of models became one category for each."
        self.note(".models.reviewers", text)
        numbered = {f"reviewers{n}": each for n, each in enumerate(_items(models["reviewers"]), 1)}
        return {key: each for key, each in models.items() if key != "reviewers"} | numbered

    def task(self, name: str, task: object) -> object:
        path = f'.tasks["{name}"]'
        if not isinstance(task, Mapping):
            return task
        translated = dict(task)
        if isinstance(task.get("availability"), Mapping):
            translated["availability"] = self.availability(f"{path}.availability", dict(task["availability"]))
        if isinstance(task.get("criteria"), Mapping):
            translated["criteria"] = self.criteria(f"{path}.criteria", dict(task["criteria"]))
        return translated

    def availability(self, path: str, availability: Data) -> Data:
        known = (
            ("previousJobKeywords", self.keywords, "grid keyword"),
            ("previousTasks", self.data.get("tasks", {}), "task name"),
        )
        for key, names, what in known:
            if key not in availability:
                continue
            for i, name in enumerate(_items(availability.pop(key))):
                if not isinstance(name, str) or not isinstance(names, list | Mapping) or name not in names:
                    raise EntryError(f"{self.root}{path}.{key}[{i}]", f'"{name}" is not a valid {what}.')
            self.note(f"{path}.{key}", "Dropped: it was never evaluated.")
        return availability

    def criteria(self, path: str, criteria: Data) -> Data:
        action = criteria.get("failureAction")
        match action:
            case ["RetryWithNewSession", retries]:
                criteria["failureAction"] = {"retryTimes": retries}
            case ["RetryWithUserPrompt", retries, prompt]:
                criteria["failureAction"] = {"retryTimes": retries, "additionalPrompt": prompt}
            case [*_]:
                raise EntryError(
                    f"{self.root}{path}.failureAction",
                    'Should be ["RetryWithNewSession", times] or ["RetryWithUserPrompt", times, prompt].',
                )
        return criteria

    def job(self, name: str, job: object) -> object:
        if not isinstance(job, Mapping):
            return job
        translated = {key: each for key, each in job.items() if key != "printedName"}
        if isinstance(job.get("printedName"), str):
            self.printed_names[name] = job["printedName"]
        if "work" in job:
            translated["work"] = self.work(job["work"])
        return translated

    def work(self, work: object) -> object:
        self.works += 1
        if self.works > MAX_VALUES:
            raise EntryError(self.root, f"The entry has more than {MAX_VALUES} values.")
        match work:
            case {"kind": "Seq" | "Par" as kind, "works": [*works], **rest}:
                translated = [self.work(child) for child in works]
                return {"kind": kind, "works": [child for child in translated if not _is_empty(child)], **rest}
            case {"kind": "Loop", **rest}:
                return {"kind": "Loop", **rest, **self.loop_parts(rest)}
            case {"kind": "Alt", **rest}:
                return {"kind": "Alt", **self.alt(rest)}
            case _:
                return work

    def alt(self, alt: Mapping[object, object]) -> Data:
        parts: Data = {key: self.work(alt[key]) for key in ("condition", "trueWork", "falseWork") if key in alt}
        for key in ("trueWork", "falseWork"):
            if _is_empty(parts.get(key)):
                del parts[key]
        rest = {key: each for key, each in alt.items() if key not in ("trueWork", "falseWork")}
        return {**rest, **parts}

    def loop_parts(self, loop: Mapping[object, object]) -> Data:
        parts: Data = {"body": self.work(loop["body"])} if "body" in loop else {}
        for key in ("preCondition", "postCondition"):
            match loop.get(key):
                case [expected, condition]:
                    parts[key] = [expected, self.work(condition)]
        return parts

    def row(self, r: int, row: object) -> object:
        if not isinstance(row, Mapping):
            return row
        translated = {key: each for key, each in row.items() if key != "automate"}
        if "automate" in row:
            self.note(f".grid[{r}].automate", "Dropped: it was never used.")
        if isinstance(row.get("jobs"), list):
            cells = enumerate(_items(row["jobs"]))
            translated["jobs"] = [self.column(f".grid[{r}].jobs[{c}]", cell) for c, cell in cells]
        return translated

    def column(self, path: str, column: object) -> object:
        if not isinstance(column, Mapping) or "id" not in column:
            return column
        jobs = self.data.get("jobs")
        job_name = column["id"]
        if not isinstance(jobs, Mapping) or not isinstance(job_name, str) or job_name not in jobs:
            self.note(path, f"Dropped: there is no job {job_name!r}.")
            return None
        return {**{key: each for key, each in column.items() if key != "id"}, "jobName": job_name}


def _is_empty(work: object) -> bool:
    """An empty Seq or Par was allowed and did nothing."""
    match work:
        case {"kind": "Seq" | "Par", "works": []}:
            return True
        case _:
            return False
