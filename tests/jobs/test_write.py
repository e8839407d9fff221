import importlib
import pkgutil

import pytest

import portico.features.jobs
from portico.features.jobs import EntryError, Model, alt, entry, job, load_entry, loop, par, seq, task

MODELS = {"driving": "gpt-5-mini", "coding": "gpt-5.2"}


def test_python_and_a_file_give_the_same_entry() -> None:
    write = task("write", "Write about $user-input.", "$short", model="coding", require_user_input=True, timeout=60)
    review = task(
        "review",
        "Review.",
        available="job_boolean_true?",
        tools=["job_prepare_document"],
        condition=["job_boolean_true", "or not?"],
        same_session=False,
        command=["make", "check"],
        retries=2,
        retry_prompt="Again: $check-output",
        on_interrupt="ask",
    )
    spare = task("spare", "Alone.", model=Model(id="x"))
    fine = review.on("driving")
    both = par(review.on("coding"), review.on(id="x"), concurrency=2)
    written = entry(
        models=MODELS,
        variables={"short": "Be short."},
        retries=[("gpt-5-mini", 3)],
        tasks=[spare],
        jobs={
            "article": job(
                seq(
                    write,
                    loop(both, post=(False, fine), max_iterations=9),
                    alt(fine, write, spare),
                ),
                timeout=3600,
            ),
            "once": loop(spare, pre=(True, fine)),
        },
        grid=[("write", ["once", None, ("an article", "article")])],
    )
    driving = {"category": "driving"}
    data = {
        "models": MODELS,
        "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 3}],
        "promptVariables": {"short": ["Be short."]},
        "tasks": {
            "spare": {"model": {"id": "x"}, "prompt": ["Alone."]},
            "write": {
                "model": {"category": "coding"},
                "prompt": ["Write about $user-input.", "$short"],
                "requireUserInput": True,
                "timeout": 60,
            },
            "review": {
                "prompt": ["Review."],
                "availability": {"condition": ["job_boolean_true?"]},
                "criteria": {
                    "toolExecuted": ["job_prepare_document"],
                    "condition": ["job_boolean_true", "or not?"],
                    "runConditionInSameSession": False,
                    "command": ["make", "check"],
                    "failureAction": {"retryTimes": 2, "additionalPrompt": ["Again: $check-output"]},
                },
                "onInterrupt": "ask",
            },
        },
        "jobs": {
            "article": {
                "timeout": 3600,
                "work": {
                    "kind": "Seq",
                    "works": [
                        {"kind": "Ref", "taskId": "write"},
                        {
                            "kind": "Loop",
                            "maxIterations": 9,
                            "postCondition": [False, {"kind": "Ref", "taskId": "review", "modelOverride": driving}],
                            "body": {
                                "kind": "Par",
                                "concurrency": 2,
                                "works": [
                                    {"kind": "Ref", "taskId": "review", "modelOverride": {"category": "coding"}},
                                    {"kind": "Ref", "taskId": "review", "modelOverride": {"id": "x"}},
                                ],
                            },
                        },
                        {
                            "kind": "Alt",
                            "condition": {"kind": "Ref", "taskId": "review", "modelOverride": driving},
                            "trueWork": {"kind": "Ref", "taskId": "write"},
                            "falseWork": {"kind": "Ref", "taskId": "spare"},
                        },
                    ],
                },
            },
            "once": {
                "work": {
                    "kind": "Loop",
                    "preCondition": [True, {"kind": "Ref", "taskId": "review", "modelOverride": driving}],
                    "body": {"kind": "Ref", "taskId": "spare"},
                }
            },
        },
        "grid": [
            {
                "keyword": "write",
                "jobs": [{"name": "once", "jobName": "once"}, None, {"name": "an article", "jobName": "article"}],
            }
        ],
    }
    assert written == load_entry(data)
    assert list(written.tasks) == list(data["tasks"])


def test_one_name_for_two_tasks_is_refused() -> None:
    with pytest.raises(EntryError, match=r'entry.tasks\["a"\]: Two different tasks have this name.'):
        seq(task("a", "one"), task("a", "two"))


def test_wrong_values_are_refused_as_in_a_file() -> None:
    work = par(task("a", "x", model="coding"), concurrency=0)
    with pytest.raises(EntryError) as caught:
        entry(models=MODELS, jobs={"j": work}, code_path="tasks.py:")
    assert str(caught.value) == 'tasks.py:entry.jobs["j"].work.concurrency: Should be at least 1 but is 0.'
    with pytest.raises(EntryError, match=r"entry.models.driving: Should exist."):
        entry(models={}, jobs={})


def test_modules_of_the_package_do_not_hide_the_words() -> None:
    """A module called like one of the words would replace it in `from portico.features.jobs import ...`."""
    for module in pkgutil.iter_modules(portico.features.jobs.__path__):
        importlib.import_module(f"portico.features.jobs.{module.name}")
    for word in ("task", "seq", "par", "loop", "alt", "entry", "job"):
        assert callable(getattr(portico.features.jobs, word))
