"""Works that are no task, what a work leaves behind, and how works are named, found and drawn."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import EntryError, load_entry
from portico.features.jobs import events as je
from portico.features.jobs.check import check_files, check_schema, json_of, schema_errors
from portico.features.jobs.entry import FilesCheck, SchemaCheck, Work, labels_of, leaves_of, name_of, parts_of
from portico.features.jobs.evidence import CHANGED_LINES, named
from portico.features.jobs.pause import end_of, fields_of
from portico.features.jobs.result import ends_of
from portico.features.jobs.state import JobState, WorkSummary, begin, fold, plan_of
from portico.features.jobs.tree import draw_tree
from portico.features.jobs.work import in_condition, steps_of, work_at
from portico.kernel import events as e
from tests.jobs.samples import Data, alt, entry_data, loop, par, ref, seq


def ask(**more: object) -> Data:
    return {"kind": "Ask", "question": ["Go on?"], **more}


def wait(**more: object) -> Data:
    return {"kind": "Wait", **more}


def each(**more: object) -> Data:
    return {"kind": "Each", "body": ref(), **more}


def work_of(data: Data, **more: Any) -> Work:
    return load_entry(entry_data(data, **more)).jobs["main"].work


# -- what is wrong with them -----------------------------------------------------------------------------------

WRONG: dict[str, tuple[Data, str]] = {
    "a choice without words": (ask(choices=[{"label": " "}]), ".choices[0].label: Should say something."),
    "a choice twice": (
        ask(choices=[{"label": "a"}, {"label": "b"}, {"label": "a"}]),
        '.choices[2].label: "a" is a choice already.',
    ),
    "a choice that does nothing known": (
        ask(choices=[{"label": "a", "work": ref("no")}]),
        '.choices[0].work.taskId: "no" is not a valid task name.',
    ),
    "an empty question": (ask(question=[]), ".question: Prompt is empty."),
    "an unknown variable": (ask(question=["$no"]), ".question: Cannot find prompt variable: $no."),
    "a wait for nothing": (wait(), ": Should have exactly one of seconds, until, hook."),
    "a wait for two things": (wait(seconds=1, hook="x"), ": Should have exactly one of seconds, until, hook."),
    "a wait for all": (
        wait(seconds=1, hook="x", until="2027-01-31T09:00:00Z"),
        ": Should have exactly one of seconds, until, hook.",
    ),
    "a hook with a slash": (wait(hook="a/b"), ".hook: Should be letters, digits, - and _, at most 100."),
    "a hook that is too long": (wait(hook="a" * 101), ".hook: Should be letters, digits, - and _, at most 100."),
    "a hook without a name": (wait(hook=""), ".hook: Should be letters, digits, - and _, at most 100."),
    "a time without a zone": (
        wait(until="2027-01-31T09:00:00"),
        '.until: "2027-01-31T09:00:00" should be a time such as "2027-01-31T09:00:00+01:00".',
    ),
    "no time": (wait(until="soon"), '.until: "soon" should be a time such as "2027-01-31T09:00:00+01:00".'),
    "each of nothing": (each(), ": Should have exactly one of files, output, items."),
    "each of two things": (each(files="*", items=[]), ": Should have exactly one of files, output, items."),
    "files elsewhere": (each(files="../*"), '.files: "../*" should be a path or glob below the working directory.'),
    "files from the root": (each(files="/*"), '.files: "/*" should be a path or glob below the working directory.'),
    "no files": (each(files=""), '.files: "" should be a path or glob below the working directory.'),
    "a glob without end": (each(files="{a,b}" * 9), ".files: The glob '{a,b}"),
    "an output that no task has": (each(output="list"), '.output: "list" is not the output of a task.'),
    "a body that is wrong": (each(items=["a"], body=ref("no")), '.body.taskId: "no" is not a valid task name.'),
}


@pytest.mark.parametrize(("work", "expected"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(("around", "place"), [(lambda work: work, ""), (lambda work: seq(ref(), work), ".works[1]")])
def test_a_mistake_is_named_with_its_place(around: Any, place: str, work: Data, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        load_entry(entry_data(around(work)))
    assert str(caught.value).startswith(f'entry.jobs["main"].work{place}{expected}')


RIGHT = [
    ask(choices=[{"label": "a"}, {"label": "b", "work": ref()}], people=["ann"], expires=5),
    wait(seconds=0.5),
    wait(hook="a-B_9"),
    wait(hook="a" * 100),
    wait(until="2027-01-31T09:00:00Z"),
    wait(until="2027-01-31T09:00:00+01:00"),
    each(files="src/**/*.py", concurrency=3),
    each(items=[]),
]


@pytest.mark.parametrize("work", RIGHT, ids=str)
def test_what_is_right_is_taken(work: Data) -> None:
    assert next(leaves_of(work_of(work))).work_id_in_job == 0


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("no spaces", '.name: "no spaces" should be letters, with "-" between words.'),
        ("", '.name: "" should be letters, with "-" between words.'),
        ("a1", '.name: "a1" should be letters, with "-" between words.'),
        ("user-input", '.name: "user-input" is a variable already.'),
        ("answer", '.name: "answer" is a variable already.'),
        ("item", '.name: "item" is a variable already.'),
        ("mine", '.name: "mine" is a variable already.'),
        ({"name": "list", "schema": {"type": 7}}, ".schema: Is not a JSON Schema: 7 is not valid"),
    ],
)
def test_what_an_output_may_be_called(output: object, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        load_entry(entry_data(task={"output": output}, promptVariables={"mine": ["x"]}))
    assert str(caught.value).startswith(f'entry.tasks["write"].output{expected}')


def test_models_that_take_over_are_models_of_the_entry() -> None:
    with pytest.raises(EntryError, match=r'fallback\[1\].category: "no" is not a valid model key'):
        load_entry(entry_data(task={"fallback": [{"id": "x"}, {"category": "no"}]}))


@pytest.mark.parametrize(
    ("work", "needed"),
    [
        (ref(), False),
        (ref("ask"), True),
        (ask(), False),
        (ask(question=["About $user-input?"]), True),
        (wait(seconds=1), False),
        (seq(ref(), each(items=["a"], body=ref("ask"))), True),
        (ask(choices=[{"label": "a", "work": ref("ask")}]), True),
    ],
    ids=str,
)
def test_a_job_needs_input_where_one_of_its_works_does(work: Data, needed: bool) -> None:
    assert load_entry(entry_data(work)).jobs["main"].require_user_input is needed


# -- names and places ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (ref(), "write"),
        (ask(question=["First", "second"]), "First"),
        (ask(question=["x" * 60]), "x" * 60),
        (ask(question=["x" * 61]), "x" * 59 + "…"),
        (wait(seconds=90), "wait 90 s"),
        (wait(seconds=0.5), "wait 0.5 s"),
        (wait(until="2027-01-31T09:00:00Z"), "wait until 2027-01-31T09:00:00Z"),
        (wait(hook="go"), "wait for go"),
    ],
)
def test_what_lists_call_a_work(work: Data, name: str) -> None:
    [leaf] = leaves_of(work_of(work))
    assert name_of(leaf) == name


TREE = seq(
    ref(),
    par(ref(), loop(ref(), preCondition=[True, ref()], postCondition=[False, ref()])),
    alt(ref(), trueWork=ref(), falseWork=seq(ref(), ref())),
    ask(choices=[{"label": "a", "work": ref()}, {"label": "b"}]),
    each(items=["x", "y"], body=seq(ref(), wait(seconds=1))),
)
PLACES = {
    "r.0": 0,
    "r.1.0": 1,
    "r.1.1#3<": 2,
    "r.1.1#0>": 3,
    "r.1.1#7": 4,
    "r.2|?": 5,
    "r.2|1": 6,
    "r.2|0.1": 8,
    "r.3": 9,
    "r.3|0": 10,
    "r.4*1.0": 11,
    "r.4*0.1": 12,
}


@pytest.mark.parametrize(("path", "number"), PLACES.items())
def test_a_path_leads_to_its_work(path: str, number: int) -> None:
    found = work_at(work_of(TREE), path)
    assert getattr(found, "work_id_in_job", None) == number


@pytest.mark.parametrize(
    ("path", "steps"),
    [("r", ["r"]), ("r.0", ["r", ".0"]), ("r.12|?", ["r", ".12", "|?"]), ("r#3<.1*4", ["r", "#3<", ".1", "*4"])],
)
def test_the_steps_of_a_path(path: str, steps: list[str]) -> None:
    assert steps_of(path) == steps
    assert "".join(steps_of(path)) == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [("r|?", True), ("r#0<", True), ("r#0>.1", True), ("r|1", False), ("r#0", False), ("r.0*2", False)],
)
def test_a_condition_is_known_by_its_path(path: str, expected: bool) -> None:
    assert in_condition(path) is expected


def test_the_parts_of_a_work_in_the_order_of_their_numbers() -> None:
    keys = [key for key, _ in parts_of(work_of(TREE))]
    assert keys == [".works[0]", ".works[1]", ".works[2]", ".works[3]", ".works[4]"]
    assert [leaf.work_id_in_job for leaf in leaves_of(work_of(TREE))] == list(range(13))


def test_a_tree_in_a_terminal() -> None:
    assert draw_tree(work_of(TREE)).splitlines() == [
        "Seq",
        "├─ [0] write",
        "├─ Par",
        "│  ├─ [1] write",
        "│  └─ Loop",
        "│     ├─ while true: [2] write",
        "│     ├─ do: [4] write",
        "│     └─ again while false: [3] write",
        "├─ Alt",
        "│  ├─ if: [5] write",
        "│  ├─ true: [6] write",
        "│  └─ false: Seq",
        "│     ├─ [7] write",
        "│     └─ [8] write",
        "├─ [9] ask: Go on?",
        "│  └─ a: [10] write",
        "└─ Each of 2 items (1 at a time)",
        "   └─ do: Seq",
        "      ├─ [11] write",
        "      └─ [12] wait 1 s",
    ]


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (par(ref(), concurrency=2), "Par (at most 2 at a time)"),
        (loop(ref(), maxIterations=3), "Loop (at most 3 times)"),
        (ref(modelOverride={"id": "gpt"}), "[0] write (gpt)"),
        (each(files="*.py", concurrency=4), "Each of *.py (4 at a time)"),
        (ask(question=["a\x1b[31mb"]), "[0] ask: a\ufffd[31mb"),
    ],
)
def test_how_a_work_is_headed(work: Data, line: str) -> None:
    assert draw_tree(work_of(work)).splitlines()[0] == line


def test_labels_come_from_the_task_or_from_its_job() -> None:
    data = entry_data(seq(ref(), ref("ask")), task={"label": "gpu"})
    assert labels_of(load_entry(data), "main") == {"write": "gpu"}
    data["jobs"]["main"]["label"] = "big"
    assert labels_of(load_entry(data), "main") == {"write": "gpu", "ask": "big"}


# -- questions and waits ---------------------------------------------------------------------------------------


def test_choices_are_one_question_and_a_free_answer_has_no_fields() -> None:
    chosen: Any = work_of(ask(choices=[{"label": "a"}, {"label": "b"}]))
    [field] = fields_of(chosen)
    assert (field["id"], field["kind"], field["required"]) == ("answer", "single-select", True)
    assert field["options"] == [{"id": "a", "label": "a"}, {"id": "b", "label": "b"}]
    free: Any = work_of(ask())
    assert fields_of(free) == []


@pytest.mark.parametrize(
    ("given", "end"),
    [
        (wait(seconds=1.5), 1_000_000 + 1_500),
        (wait(until="1970-01-01T00:00:02Z"), 2_000),
        (wait(until="1970-01-01T01:00:02+01:00"), 2_000),
    ],
)
def test_when_a_wait_is_over(given: Data, end: int) -> None:
    work: Any = work_of(given)
    assert end_of(work, 1_000_000) == end


# -- checks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1] \n", [1]),
        ("7", 7),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("```\n1\n```\n```\n2\n```", 2),
        ("```\n1\n```\n```\nno\n```", 1),
    ],
)
def test_the_json_of_an_answer(text: str, value: object) -> None:
    assert json_of(text) == value


@pytest.mark.parametrize("text", ["", "no", "```\nno\n```", '{"a": 1} and more', "[" * 5000])
def test_an_answer_without_json(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON in the answer"):
        json_of(text)


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"type": "object"}, {}, []),
        ({"type": "object"}, [], ["$: [] is not of type 'object'"]),
        ({"properties": {"a": {"type": "string"}}}, {"a": 7}, ["$.a: 7 is not of type 'string'"]),
        (
            {"items": {"minimum": 3}},
            [1, 5, 2],
            ["$[0]: 1 is less than the minimum of 3", "$[2]: 2 is less than the minimum of 3"],
        ),
        ({"required": ["a"]}, {}, ["$: 'a' is a required property"]),
    ],
)
def test_what_does_not_fit_a_schema_is_named_with_its_place(schema: Data, value: object, errors: list[str]) -> None:
    assert schema_errors(schema, value) == errors


@pytest.mark.parametrize("schema", [{"$ref": "http://localhost:1/x"}, {"$ref": "#"}], ids=["elsewhere", "to itself"])
def test_a_schema_that_refers_elsewhere_or_to_itself_fetches_nothing(schema: Data) -> None:
    assert schema_errors(schema, {})[0].startswith("the schema cannot be used:") or schema == {"$ref": "#"}


@pytest.mark.parametrize(
    ("content", "file", "reason"),
    [
        ("{}", "a.json", "The JSON file 'a.json' fits its schema"),
        ("[]", "a.json", "The JSON file 'a.json' does not fit its schema\n$: [] is not of type 'object'"),
        ("no", "a.json", "The JSON file 'a.json' does not fit its schema\n"),
        (None, "a.json", "The JSON file 'a.json' does not fit its schema\n"),
        ("{}", "out.json", "The JSON file 'out.json' does not fit its schema\n'out.json' leads out of"),
    ],
)
async def test_a_json_file_fits_its_schema(tmp_path: Path, content: str | None, file: str, reason: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (folder / "out.json").symlink_to(tmp_path / "secret.json")
    if content is not None:
        (folder / "a.json").write_text(content)
    checked = await check_schema(SchemaCheck(schema={"type": "object"}, file=file), str(folder), "")
    assert checked.reason.startswith(reason)
    assert checked.passed is reason.endswith("fits its schema")


FILES: dict[str, tuple[dict[str, Any], dict[str, int] | None, list[str]]] = {
    "there": ({"exist": ["a.py", "src/*.py", "**/b.py"]}, None, []),
    "missing": ({"exist": ["c.py", "src/c.py"]}, None, ["missing: c.py", "missing: src/c.py"]),
    "a folder counts": ({"exist": ["src/deep"]}, None, []),
    "absent": ({"absent": ["c.py", "src/c/*"]}, None, []),
    "not absent": ({"absent": ["*.py"]}, None, [f"should not be there: {each}" for each in ("a.py", "src/b.py")]),
    "git's own folder is nobody's": ({"exist": [".git/config"], "absent": ["config"]}, None, []),
    "changes within": ({"changed_only": ["src/**"]}, {"src/b.py": 3}, []),
    "changes elsewhere": (
        {"changed_only": ["src/**"]},
        {"a.py": 1, "src/b.py": 3},
        ["should not have been changed: a.py"],
    ),
    "few lines": ({"max_changed_lines": 4}, {"a.py": 1, "src/b.py": 3}, []),
    "too many lines": ({"max_changed_lines": 3}, {"a.py": 1, "src/b.py": 3}, ["4 lines were changed; 3 is the limit"]),
    "no line at all": ({"max_changed_lines": 0}, {}, []),
    "changes that are not known": (
        {"max_changed_lines": 3},
        None,
        ["what was changed is not known: the working directory is no git work tree"],
    ),
}


@pytest.mark.parametrize(("check", "changes", "wrong"), FILES.values(), ids=FILES)
async def test_what_files_have_to_be(
    tmp_path: Path, check: dict[str, Any], changes: dict[str, int] | None, wrong: list[str]
) -> None:
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("a.py", "src/b.py", ".git/config"):
        (tmp_path / name).touch()
    checked = await check_files(FilesCheck(**check), str(tmp_path), changes)
    assert checked.output.splitlines() == wrong
    assert checked.passed is (not wrong)
    assert checked.reason.startswith("Files check failed" if wrong else "Files check passed")


def test_a_question_names_what_was_changed_up_to_a_bound() -> None:
    assert named("Good?", {}) == "Good?"
    assert named("Good?", {"a": 3}) == "Good?\n\nChanged files:\n- a (3 lines)"
    many = named("Good?", {str(number): 1 for number in range(CHANGED_LINES + 5)}).splitlines()
    assert len(many) == CHANGED_LINES + 3


# -- what is known of a job ------------------------------------------------------------------------------------


def job(work: Data | None = None) -> JobState:
    entry = load_entry(entry_data(work or seq(ref(), ref("ask"))))
    started = je.JobStarted(job="job-1", name="main", entry=plan_of(entry, "main"), cwd="/", by="me", owner="ann")
    return begin(started, 100)


def folded(*events: e.Event) -> JobState:
    state = job()
    for number, event in enumerate(events, 101):
        fold(state, event, number)
    return state


def started(task: str = "task-1", path: str = "r.0", work: int = 0, attempt: int = 1) -> je.WorkStarted:
    return je.WorkStarted(path=path, work=work, task=task, attempt=attempt)


def ended(outcome: je.WorkOutcome, task: str = "task-1", path: str = "r.0", work: int = 0) -> je.WorkEnded:
    return je.WorkEnded(path=path, work=work, task=task, outcome=outcome, error="why" if outcome == "crashed" else "")


def test_a_job_as_it_begins() -> None:
    summary = job().summary
    assert (summary.id, summary.name, summary.status, summary.started) == ("job-1", "main", "running", 100)
    assert (summary.cwd, summary.by, summary.owner, summary.done) == ("/", "me", "ann", False)


WORKS: dict[str, tuple[list[e.Event], list[WorkSummary]]] = {
    "one runs": ([started()], [WorkSummary(0, "write", "task-1", "running", 101)]),
    "one has succeeded": (
        [started(), ended("succeeded")],
        [WorkSummary(0, "write", "task-1", "succeeded", 101, 102)],
    ),
    "one was stopped": ([started(), ended("stopped")], [WorkSummary(0, "write", "task-1", "stopped", 101, 102)]),
    "one is tried again": (
        [started(), ended("failed"), started("task-2", attempt=2)],
        [WorkSummary(0, "write", "task-2", "running", 103, runs=2)],
    ),
    "two of them": (
        [started(), ended("succeeded"), started("task-2", "r.1", 1)],
        [WorkSummary(0, "write", "task-1", "succeeded", 101, 102), WorkSummary(1, "ask", "task-2", "running", 103)],
    ),
    "the end of an earlier run": (
        [started(), started("task-2", attempt=2), ended("failed")],
        [WorkSummary(0, "write", "task-2", "running", 102, runs=2)],
    ),
    "the same attempt of another host": (
        [started(), started("task-9")],
        [WorkSummary(0, "write", "task-1", "running", 101)],
    ),
}


@pytest.mark.parametrize(("events", "works"), WORKS.values(), ids=WORKS)
def test_the_works_of_a_job(events: list[e.Event], works: list[WorkSummary]) -> None:
    assert folded(*events).summary.works == works


@pytest.mark.parametrize(
    ("events", "status", "reason", "error"),
    [
        ([je.JobDecided(path="r", reason="round 2")], "running", "round 2", ""),
        ([je.JobWaiting(reason="no host")], "waiting", "no host", ""),
        ([je.JobWaiting(reason="no host"), je.JobResumed(by="me")], "running", "", ""),
        ([je.JobEnded(job="job-1", outcome="succeeded", by="host")], "succeeded", "", ""),
        ([je.JobEnded(job="job-1", outcome="failed", by="host", error="x")], "failed", "", "x"),
        ([je.JobEnded(job="job-1", outcome="canceled", by="me")], "canceled", "", ""),
    ],
)
def test_how_a_job_goes(events: list[e.Event], status: str, reason: str, error: str) -> None:
    summary = folded(*events).summary
    assert (summary.status, summary.reason, summary.error) == (status, reason, error)
    assert summary.done is (status in ("succeeded", "failed", "canceled"))


@pytest.mark.parametrize(
    ("events", "crashes"),
    [
        ([started(), ended("interrupted")], 1),
        ([started(), je.JobSuspended(), ended("interrupted")], 0),
        ([started(), je.JobSuspended(), je.JobResumed(by="me"), ended("interrupted")], 1),
        ([started(), ended("failed")], 0),
        ([started(), ended("interrupted"), started("task-2", attempt=2), ended("interrupted", "task-2")], 2),
        ([started(), ended("interrupted", "task-9")], 0),
    ],
)
def test_an_end_that_nobody_asked_for_counts_as_a_crash(events: list[e.Event], crashes: int) -> None:
    assert folded(*events).runs["r.0"].crashes == crashes


def test_what_is_in_flight_and_what_stops_it() -> None:
    state = folded(started(), ended("succeeded"), started("task-2", "r.1", 1))
    assert list(state.open) == ["r.1"]
    assert ends_of(state) == [je.WorkEnded(path="r.1", work=1, task="task-2", outcome="stopped")]


def test_a_job_that_goes_on_knows_what_has_succeeded() -> None:
    entry = load_entry(entry_data(seq(ref(), ref("ask"))))
    again = begin(
        je.JobStarted(
            job="job-2",
            name="main",
            entry=plan_of(entry, "main"),
            cwd="/",
            by="me",
            origin="job-1",
            done={"r.0": True, "r.1|?": False},
            values={"r.0": {"list": "[]"}},
        ),
        0,
    )
    assert {path: run.outcome for path, run in again.runs.items()} == {"r.0": "succeeded", "r.1|?": "failed"}
    assert again.seen_from("r.1") == {"list": "[]"}
    assert again.summary.origin == "job-1"


def test_the_log_has_only_what_the_job_needs() -> None:
    data = entry_data(ref(), promptVariables={"mine": ["x"]})
    plan = plan_of(load_entry(data), "main")
    assert list(plan["tasks"]) == ["write"]
    assert list(plan["jobs"]) == ["main"]
    assert plan["grid"] == []
    assert "promptVariables" not in plan
