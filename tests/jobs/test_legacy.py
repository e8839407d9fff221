import copy

import msgspec
import pytest
import yaml

from portico.features.jobs import EntryError, load_entry
from portico.features.jobs.legacy import import_entry, import_legacy, looks_legacy
from portico.features.jobs.load import parse
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq

CONDITION = {"condition": ["job_boolean_true?"], "runConditionInSameSession": False}


def old_entry(**more: object) -> Data:
    return {
        "models": {"driving": "gpt-5-mini", "coding": "gpt-5.2", "reviewers": ["r", "s"]},
        "promptVariables": {},
        "tasks": {
            "write": {
                "model": {"category": "coding"},
                "prompt": ["Write."],
                "requireUserInput": False,
                "availability": {"previousJobKeywords": ["plan"], "previousTasks": ["check"]},
                "criteria": {**CONDITION, "failureAction": ["RetryWithNewSession", 3]},
            },
            "check": {
                "model": {"category": "driving"},
                "prompt": ["Check."],
                "requireUserInput": False,
                "criteria": {**CONDITION, "failureAction": ["RetryWithUserPrompt", 5, ["Because", "of it"]]},
            },
        },
        "jobs": {
            "main": {
                "printedName": "Main",
                "work": seq(
                    ref(workIdInJob=7),
                    seq(),
                    alt(ref("check"), trueWork=par(seq()), falseWork=ref()),
                    loop(ref(), postCondition=[False, ref("check")]),
                ),
            }
        },
        "grid": [
            {"keyword": "plan", "automate": True, "jobs": [{"name": "go", "id": "main"}, {"name": "x", "id": "y"}]}
        ],
        **more,
    }


def test_the_old_format_becomes_a_valid_entry() -> None:
    entry, notes, printed_names = import_legacy(old_entry())
    assert entry == load_entry(
        {
            "models": {"driving": "gpt-5-mini", "coding": "gpt-5.2", "reviewers1": "r", "reviewers2": "s"},
            "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 5}],
            "tasks": {
                "write": {
                    "model": {"category": "coding"},
                    "prompt": ["Write."],
                    "availability": {},
                    "criteria": {**CONDITION, "failureAction": {"retryTimes": 3}},
                },
                "check": {
                    "model": {"category": "driving"},
                    "prompt": ["Check."],
                    "criteria": {
                        **CONDITION,
                        "failureAction": {"retryTimes": 5, "additionalPrompt": ["Because", "of it"]},
                    },
                },
            },
            "jobs": {
                "main": {
                    "work": seq(
                        ref(),
                        alt(ref("check"), falseWork=ref()),
                        loop(ref(), postCondition=[False, ref("check")]),
                    )
                }
            },
            "grid": [{"keyword": "plan", "jobs": [{"name": "go", "jobName": "main"}, None]}],
        }
    )
    assert [note.split(":")[0] for note in notes] == [
        "entry.models.reviewers",
        'entry.tasks["write"].availability.previousJobKeywords',
        'entry.tasks["write"].availability.previousTasks',
        "entry.grid[0].automate",
        "entry.grid[0].jobs[1]",
    ]
    assert printed_names == {"main": "Main"}


def test_unknown_keys_are_named_and_dropped() -> None:
    """One of them refused the whole file, although the format of its time did not look at them."""
    models = {"driving": "gpt-5-mini", "coding": "gpt-5.2", "reviewers": []}
    data = old_entry(models=models, colour="red")
    data["tasks"]["write"]["model"]["size"] = "big"
    data["jobs"]["main"]["work"]["works"][0]["hint"] = 1
    before = copy.deepcopy(data)
    entry, notes, _ = import_legacy(data, "old.json:")
    assert data == before, "the caller's data is left as it was"
    assert entry.models == {"driving": "gpt-5-mini", "coding": "gpt-5.2"}
    assert [note for note in notes if "not a key" in note or "reviewers" in note] == [
        "old.json:entry.models.reviewers: Dropped: the list is empty.",
        "old.json:entry.colour: Dropped: it is not a key of an entry.",
        'old.json:entry.tasks["write"].model.size: Dropped: it is not a key of an entry.',
        'old.json:entry.jobs["main"].work.works[0].hint: Dropped: it is not a key of an entry.',
    ]


def test_a_task_without_a_model_is_refused_as_it_was() -> None:
    data = old_entry()
    del data["tasks"]["check"]["model"]
    with pytest.raises(EntryError, match=r'must be defined because task "check" has no specified model'):
        import_legacy(data)
    data["jobs"]["main"]["work"] = ref("check", modelOverride={"category": "driving"})
    assert "main" in import_legacy(data).entry.jobs


def test_a_list_of_reviewers_makes_an_entry_an_old_one() -> None:
    """Files from between the two formats have it beside `drivingSessionRetries`, which stay as they are."""
    data = {**entry_data(), "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 2}]}
    data["models"] = {**data["models"], "reviewers": ["r"]}
    entry = import_entry(data).entry
    assert (entry.models["reviewers1"], entry.driving_session_retries[0].retries) == ("r", 2)


def test_an_entry_of_today_is_read_leniently_only_when_asked() -> None:
    data = {**entry_data(), "colour": "red"}
    with pytest.raises(EntryError, match="Unknown key"):
        import_entry(data)
    assert import_entry(data, old=True) == (load_entry(entry_data()), [UNKNOWN_COLOUR], {})


UNKNOWN_COLOUR = "entry.colour: Dropped: it is not a key of an entry."


def changed(task: Data) -> Data:
    data = old_entry()
    data["tasks"]["write"].update(task)
    return data


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"availability": {"previousJobKeywords": ["x"]}},
            '.availability.previousJobKeywords[0]: "x" is not a valid grid keyword.',
        ),
        ({"availability": {"previousTasks": ["x"]}}, '.availability.previousTasks[0]: "x" is not a valid task name.'),
        (
            {"criteria": {"failureAction": ["RetryWithUserPrompt", 1, ["$no"]]}},
            ".criteria.failureAction[2]: Cannot find prompt variable: $no.",
        ),
        (
            {"criteria": {"failureAction": ["RetryWithNewSession", "x"]}},
            ".criteria.failureAction[1]: Should be an integer but is a string.",
        ),
        (
            {"criteria": {"failureAction": ["Retry"]}},
            '.criteria.failureAction: Should be ["RetryWithNewSession", times] or',
        ),
    ],
)
def test_mistakes_are_named_where_the_old_file_has_them(task: Data, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        import_legacy(changed(task), "old.json:")
    assert str(caught.value).startswith('old.json:entry.tasks["write"]' + expected)


@pytest.mark.parametrize(
    "data", [None, [], {}, {"models": 1}, old_entry(tasks=1), old_entry(jobs=[]), old_entry(grid={})]
)
def test_other_data_is_an_entry_error(data: object) -> None:
    with pytest.raises(EntryError):
        import_legacy(data)


def test_works_that_contain_themselves_or_unfold_without_end_are_refused() -> None:
    cycle = yaml.safe_load("&w {kind: Seq, works: [*w]}")
    laughs: Data = ref()
    for _ in range(40):
        laughs = seq(laughs, laughs)
    for work in (cycle, laughs):
        with pytest.raises(EntryError):
            import_legacy(old_entry(jobs={"main": {"work": work}}))


def test_telling_the_formats_apart() -> None:
    assert looks_legacy(old_entry())
    assert looks_legacy(parse(msgspec.json.encode({"grid": [{"jobs": [None, {"id": "x"}]}]})))
    assert not looks_legacy(entry_data())
    assert not looks_legacy({})
    assert not looks_legacy(None)


def test_without_a_driving_model_the_first_one_drives() -> None:
    """The old format did not ask for one, and files without it were refused."""
    imported = import_legacy(old_entry(models={"coding": "gpt-5.2", "reviewers": ["r", "s"]}))
    assert (imported.entry.models["driving"], imported.entry.driving_session_retries[0].model_id) == ("gpt-5.2",) * 2
    assert "entry.models.driving: It was not there; 'coding' drives now." in imported.notes
