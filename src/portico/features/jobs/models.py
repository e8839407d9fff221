"""Which models an entry or one of its jobs needs, and the error if no agent offers them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from portico.features.jobs.entry import Entry, EntryError, Model, Ref, Work, parts_of
from portico.features.jobs.step import FlowStep, PromptDo


class AvailableModel(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def multiplier(self) -> float: ...


class ModelUse(NamedTuple):
    place: str
    model_id: str
    instead: tuple[str, ...] = ()
    """Alternative models: the task's fallback."""


def models_used(entry: Entry, code_path: str = "") -> list[ModelUse]:
    """Every model id that the entry names in `models` and `drivingSessionRetries`, with its place."""
    root = f"{code_path}entry"
    named = [ModelUse(f"{root}.models.{key}", model_id) for key, model_id in entry.models.items()]
    return named + _driving_retries(entry, root)


def models_of_job(entry: Entry, job_name: str, code_path: str = "") -> list[ModelUse]:
    """Every model id that running this job can ask for, literal ids included."""
    root = f"{code_path}entry"
    return [
        *_driving_retries(entry, root),
        *_of_work(entry, entry.jobs[job_name].work, root, f'.jobs["{job_name}"].work'),
    ]


def model_id(entry: Entry, model: Model) -> str:
    """The id behind a category or a literal id of a validated entry."""
    return model.id if model.id is not None else entry.models[model.category or ""]


def fallback_of(entry: Entry, task: str) -> list[str]:
    """The ids of the models that take over from the task's own, in order."""
    return [model_id(entry, each) for each in entry.tasks[task].fallback]


def check_models(uses: Iterable[ModelUse], available: Iterable[AvailableModel]) -> None:
    """Raise for the first model that no agent offers. The message lists the available models."""
    models = list(available)
    known = {model.id for model in models}
    for use in uses:
        if use.model_id not in known:
            lines = [f'"{use.model_id}" is not an available model id.', "Available models:"]
            lines += [f"- {model.name} ({model.id}), multiplier {model.multiplier:g}" for model in models]
            raise EntryError(use.place, "\n".join(lines))


def _driving_retries(entry: Entry, root: str) -> list[ModelUse]:
    retries = enumerate(entry.driving_session_retries)
    return [ModelUse(f"{root}.drivingSessionRetries[{i}].modelId", retry.model_id) for i, retry in retries]


def _of_work(entry: Entry, work: Work, root: str, path: str) -> Iterator[ModelUse]:
    match work:
        case Ref(task_id=task_id, model_override=override):
            model = override or entry.tasks[task_id].model
            place = f'.tasks["{task_id}"].model' if override is None else f"{path}.modelOverride"
            if model is not None:
                yield _use(entry, model, root, place)._replace(instead=tuple(fallback_of(entry, task_id)))
            yield from _judges(entry, task_id, root)
        case FlowStep(do=PromptDo(task=task_id)):
            if (own := entry.tasks[task_id].model) is not None:
                yield ModelUse(task_id, own.id or "", tuple(fallback_of(entry, task_id)))
            yield from _judges(entry, task_id, root)
        case _:
            for key, child in parts_of(work):
                yield from _of_work(entry, child, root, path + key)


def _judges(entry: Entry, task: str, root: str) -> Iterator[ModelUse]:
    criteria = entry.tasks[task].criteria
    for i, check in enumerate(criteria.checks if criteria is not None else []):
        for j, judge in enumerate(check.model.judges if check.model is not None else []):
            yield _use(entry, judge, root, f'.tasks["{task}"].criteria.checks[{i}].model.judges[{j}]')


def _use(entry: Entry, model: Model, root: str, path: str) -> ModelUse:
    if model.category is not None:
        return ModelUse(f"{root}.models.{model.category}", entry.models[model.category])
    return ModelUse(f"{root}{path}.id", model_id(entry, model))
