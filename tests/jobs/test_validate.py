from typing import Any

import msgspec
import pytest
from hypothesis import given

from portico.features.jobs import EntryError, load_entry, to_json, validate_entry
from portico.features.jobs.entry import refs_of
from portico.features.jobs.load import parse
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq, works

CONDITION = ["Call job_boolean_true."]
ACTION = {"retryTimes": 1}


def message(data: object) -> str:
    with pytest.raises(EntryError) as caught:
        load_entry(data, "test.json:")
    text = str(caught.value)
    assert text.startswith("test.json:entry")
    return text.removeprefix("test.json:")


def work_of(work: Data) -> Any:
    return msgspec.json.decode(msgspec.json.encode(load_entry(entry_data(work)).jobs["main"].work))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"models": {}}, "entry.models.driving: Should exist."),
        ({"drivingSessionRetries": []}, "entry.drivingSessionRetries: Should contain at least one item."),
        (
            {"drivingSessionRetries": [{"modelId": "other", "retries": 1}]},
            "entry.drivingSessionRetries: The first modelId should equal to entry.models.driving.",
        ),
        (
            {"grid": [{"keyword": "k", "jobs": [None, {"name": "n", "jobName": "x"}]}]},
            'entry.grid[0].jobs[1].jobName: "x" is not a valid job name.',
        ),
    ],
)
def test_rules_of_the_whole_entry(more: Data, expected: str) -> None:
    assert message(entry_data(**more)) == expected


def test_the_first_rules_come_first_also_when_keys_are_missing() -> None:
    assert message({}) == "entry.models.driving: Should exist."
    assert message({"models": {"driving": "m"}}) == "entry.drivingSessionRetries: Should contain at least one item."
    head = {"models": {"driving": "m"}, "drivingSessionRetries": [{"modelId": "m", "retries": 0}]}
    assert message({**head, "tasks": {}}) == "entry.grid: Should exist."
    assert message({**head, "grid": []}) == "entry.tasks: Should exist."
    assert load_entry({**head, "tasks": {}, "grid": []}).jobs == {}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"model": {"category": "no"}}, '.model.category: "no" is not a valid model key.'),
        ({"model": {"category": "reviewers"}}, '.model.category: "reviewers" is not a valid model key.'),
        ({"prompt": []}, ".prompt: Prompt is empty."),
        ({"prompt": ["$no"]}, ".prompt: Cannot find prompt variable: $no."),
        (
            {"requireUserInput": True},
            ".requireUserInput: Prompt should use $user-input when requireUserInput is true.",
        ),
        (
            {"prompt": ["$user-input"]},
            ".requireUserInput: Prompt should not use $user-input when requireUserInput is false.",
        ),
        (
            {"availability": {"condition": ["?"]}},
            ".availability.condition: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned.",
        ),
        (
            {"criteria": {"toolExecuted": ["job_boolean_true", "rm"], "failureAction": ACTION}},
            '.criteria.toolExecuted[1]: "rm" is not an available tool.',
        ),
        (
            {"criteria": {"condition": ["?"], "runConditionInSameSession": True, "failureAction": ACTION}},
            ".criteria.condition: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned.",
        ),
        (
            {"criteria": {"failureAction": {"retryTimes": 1, "additionalPrompt": []}}},
            ".criteria.failureAction.additionalPrompt: Prompt is empty.",
        ),
        ({"criteria": {"condition": CONDITION}}, ".criteria.failureAction: Should exist."),
        ({"criteria": {"command": " ", "failureAction": ACTION}}, ".criteria.command: Should name a program."),
        ({"criteria": {"command": [], "failureAction": ACTION}}, ".criteria.command: Should name a program."),
        (
            {"criteria": {"command": ["a\0"], "failureAction": ACTION}},
            ".criteria.command: Should not contain a NUL character.",
        ),
    ],
)
def test_rules_of_a_task(task: Data, expected: str) -> None:
    assert message(entry_data(task=task)) == 'entry.tasks["write"]' + expected


def test_the_rules_of_a_task_are_checked_in_their_order() -> None:
    """Every mistake at once; mended one after the other, they are reported in the order of the rules."""
    task: Data = {
        "model": {"category": "no"},
        "prompt": ["$no"],
        "requireUserInput": True,
        "availability": {"condition": ["?"]},
        "criteria": {
            "toolExecuted": ["rm"],
            "condition": ["?"],
            "runConditionInSameSession": False,
            "failureAction": {"retryTimes": 0, "additionalPrompt": ["$no"]},
        },
    }
    places = []
    for place, mended in [
        ("model", {"id": "m"}),
        ("prompt", ["hello"]),
        ("requireUserInput", False),
        ("availability", {"condition": CONDITION}),
        ("toolExecuted", []),
        ("condition", CONDITION),
        ("failureAction", ACTION),
    ]:
        places.append(message(entry_data(task=task)).removeprefix('entry.tasks["write"]').split(":")[0])
        (task if place in task else task["criteria"])[place] = mended
    assert places == [
        ".model.category",
        ".prompt",
        ".requireUserInput",
        ".availability.condition",
        ".criteria.toolExecuted[0]",
        ".criteria.condition",
        ".criteria.failureAction.additionalPrompt",
    ]
    load_entry(entry_data(task=task))


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (ref("no"), '.work.taskId: "no" is not a valid task name.'),
        (ref("bare"), '.work.modelOverride: must be defined because task "bare" has no specified model.'),
        (
            seq(ref(), ref(modelOverride={"category": "no"})),
            '.work.works[1].modelOverride.category: "no" is not a valid model key.',
        ),
        (seq(), ".work.works: should have at least one element."),
        (seq(par()), ".work.works[0].works: should have at least one element."),
        (seq(seq()), ".work.works: should have at least one element."),
        (
            loop(ref("no3"), preCondition=[True, ref("no1")], postCondition=[True, ref("no2")]),
            '.work.preCondition[1].taskId: "no1" is not a valid task name.',
        ),
        (
            loop(ref("no3"), preCondition=[True, ref()], postCondition=[True, ref("no2")]),
            '.work.postCondition[1].taskId: "no2" is not a valid task name.',
        ),
        (loop(ref("no3")), '.work.body.taskId: "no3" is not a valid task name.'),
        (alt(ref("no")), '.work.condition.taskId: "no" is not a valid task name.'),
        (alt(ref(), trueWork=ref("no")), '.work.trueWork.taskId: "no" is not a valid task name.'),
        (alt(ref(), falseWork=ref("no")), '.work.falseWork.taskId: "no" is not a valid task name.'),
    ],
)
def test_rules_of_a_work(work: Data, expected: str) -> None:
    assert message(entry_data(work)) == 'entry.jobs["main"]' + expected


def test_user_input_of_a_job_follows_from_its_tasks() -> None:
    jobs = {"a": {"work": ref()}, "b": {"work": seq(ref(), ref("ask"))}}
    entry = load_entry(entry_data(jobs=jobs, grid=[]))
    assert [job.require_user_input for job in entry.jobs.values()] == [False, True]
    wrong = {"b": {"work": ref("ask"), "requireUserInput": False}}
    assert message(entry_data(jobs=wrong, grid=[])) == (
        'entry.jobs["b"].requireUserInput: Should be true but is false.'
    )


def test_prompts_are_expanded_in_place() -> None:
    criteria = {
        "condition": ["$tool", "?"],
        "runConditionInSameSession": False,
        "failureAction": {"retryTimes": 3, "additionalPrompt": ["a", "$reported-false-reason"]},
    }
    data = entry_data(task={"prompt": ["a", "b"], "criteria": criteria}, promptVariables={"tool": CONDITION})
    task = load_entry(data).tasks["write"]
    assert task.prompt == ["a\nb"]
    assert task.criteria is not None
    assert task.criteria.condition == ["Call job_boolean_true.\n?"]
    assert task.criteria.failure_action.additional_prompt == ["a\n$reported-false-reason"]


def test_simplification_flattens_the_same_kind_at_every_level() -> None:
    a, b, c = (ref(workIdInJob=n) for n in range(3))
    assert work_of(seq(seq(ref(), seq(ref())), ref())) == seq(a, b, c)
    assert work_of(par(par(ref()), seq(ref(), par(ref())))) == par(a, seq(b, par(c)))
    assert work_of(loop(seq(seq(ref())), postCondition=[True, par(par(ref()))])) == loop(
        seq(b), postCondition=[True, par(a)]
    )
    assert work_of(alt(seq(seq(ref())), trueWork=par(par(ref())), falseWork=seq(seq(ref())))) == alt(
        seq(a), trueWork=par(b), falseWork=seq(c)
    )


def test_a_par_with_its_own_limit_keeps_it() -> None:
    limited = par(ref(workIdInJob=0), ref(workIdInJob=1), concurrency=1)
    assert work_of(par(limited, par(ref()))) == par(limited, ref(workIdInJob=2))


def test_work_ids_count_conditions_of_a_loop_before_its_body() -> None:
    work = loop(ref(workIdInJob=99), preCondition=[True, ref()], postCondition=[False, seq(ref(), ref())])
    assert work_of(work) == loop(
        ref(workIdInJob=3),
        preCondition=[True, ref(workIdInJob=0)],
        postCondition=[False, seq(ref(workIdInJob=1), ref(workIdInJob=2))],
    )
    assert work_of(loop(ref(), postCondition=[True, ref()])) == loop(
        ref(workIdInJob=1), postCondition=[True, ref(workIdInJob=0)]
    )


@given(work=works())
def test_validating_twice_or_through_a_file_changes_nothing(work: Data) -> None:
    once = load_entry(entry_data(work))
    assert validate_entry(once) == once
    assert load_entry(parse(to_json(once))) == once
    assert [each.work_id_in_job for each in refs_of(once.jobs["main"].work)] == list(
        range(len(list(refs_of(once.jobs["main"].work))))
    )
