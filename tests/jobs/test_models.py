from typing import NamedTuple

import pytest

from portico.features.jobs import EntryError, load_entry
from portico.features.jobs.models import check_models, models_of_job, models_used
from tests.jobs.samples import entry_data, ref, seq


class Available(NamedTuple):
    id: str
    name: str
    multiplier: float


MODELS = [Available("gpt-5-mini", "GPT-5 mini", 0), Available("gpt-5.4-mini", "GPT-5.4 mini", 0.33)]


def test_a_missing_model_is_named_with_its_place_and_what_there_is() -> None:
    entry = load_entry(entry_data())
    with pytest.raises(EntryError) as caught:
        check_models(models_used(entry), MODELS)
    assert str(caught.value).split("\n") == [
        'entry.models.coding: "gpt-5.2" is not an available model id.',
        "Available models:",
        "- GPT-5 mini (gpt-5-mini), multiplier 0",
        "- GPT-5.4 mini (gpt-5.4-mini), multiplier 0.33",
    ]


def test_the_models_of_the_entry_and_of_its_driving_sessions() -> None:
    entry = load_entry(entry_data(models={"driving": "gpt-5-mini", "coding": "x"}))
    assert [use[:2] for use in models_used(entry, "P:")] == [
        ("P:entry.models.driving", "gpt-5-mini"),
        ("P:entry.models.coding", "x"),
        ("P:entry.drivingSessionRetries[0].modelId", "gpt-5-mini"),
    ]


def test_a_job_needs_only_what_it_uses() -> None:
    work = seq(ref(), ref("ask"), ref("bare", modelOverride={"id": "z"}), ref(modelOverride={"category": "driving"}))
    entry = load_entry(entry_data(work))
    assert [use[:2] for use in models_of_job(entry, "main")] == [
        ("entry.drivingSessionRetries[0].modelId", "gpt-5-mini"),
        ("entry.models.coding", "gpt-5.2"),
        ('entry.tasks["ask"].model.id', "m"),
        ('entry.jobs["main"].work.works[2].modelOverride.id', "z"),
        ("entry.models.driving", "gpt-5-mini"),
    ]
    check_models(models_of_job(load_entry(entry_data(ref(modelOverride={"category": "driving"}))), "main"), MODELS)
