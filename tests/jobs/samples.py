"""Small entries and random work trees for the tests of jobs."""

from typing import Any

from hypothesis import strategies as st

Data = dict[str, Any]


def ref(task: str = "write", **more: object) -> Data:
    return {"kind": "Ref", "taskId": task, **more}


def seq(*works: Data) -> Data:
    return {"kind": "Seq", "works": list(works)}


def par(*works: Data, **more: object) -> Data:
    return {"kind": "Par", "works": list(works), **more}


def loop(body: Data, **more: object) -> Data:
    return {"kind": "Loop", "body": body, **more}


def alt(condition: Data, **more: object) -> Data:
    return {"kind": "Alt", "condition": condition, **more}


def entry_data(work: Data | None = None, task: Data | None = None, **more: object) -> Data:
    """A valid entry with one job around `work` and the tasks `write`, `bare` (no model) and `ask` (needs input)."""
    return {
        "models": {"driving": "gpt-5-mini", "coding": "gpt-5.2", "reviewers": "x"},
        "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 2}],
        "promptVariables": {},
        "tasks": {
            "write": {"model": {"category": "coding"}, "prompt": ["Write."], "requireUserInput": False, **(task or {})},
            "bare": {"prompt": ["Do it."], "requireUserInput": False},
            "ask": {"model": {"id": "m"}, "prompt": ["About $user-input"], "requireUserInput": True},
        },
        "jobs": {"main": {"work": work or ref()}},
        "grid": [{"keyword": "row", "jobs": [None, {"name": "go", "jobName": "main"}]}],
        **more,
    }


def works() -> st.SearchStrategy[Data]:
    """Valid works of every kind."""
    leaf = st.sampled_from([ref(), ref("ask"), ref("bare", modelOverride={"category": "coding"})])
    return st.recursive(leaf, _branches, max_leaves=25)


def _branches(children: st.SearchStrategy[Data]) -> st.SearchStrategy[Data]:
    lists = st.lists(children, min_size=1, max_size=4)
    condition = st.tuples(st.booleans(), children).map(list)
    return st.one_of(
        lists.map(lambda each: seq(*each)),
        lists.map(lambda each: par(*each)),
        st.builds(lambda each, limit: par(*each, concurrency=limit), lists, st.integers(1, 9)),
        st.builds(
            lambda body, more: loop(body, **more),
            children,
            st.fixed_dictionaries({}, optional={"preCondition": condition, "postCondition": condition}),
        ),
        st.builds(
            lambda condition, more: alt(condition, **more),
            children,
            st.fixed_dictionaries({}, optional={"trueWork": children, "falseWork": children}),
        ),
    )
