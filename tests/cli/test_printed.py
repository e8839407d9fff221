"""What each verb prints of what the host answers: rows for people, the answer itself for programs."""

import json
from typing import Any

import msgspec
import pytest

from portico.cli.output import when
from portico.client.client import RemoteError
from portico.features.jobs.state import JobSummary, WorkSummary
from portico.features.notices.notice import Attempt, Delivery, Notice
from portico.features.sandboxes.shapes import HostUse
from portico.kernel.events import ErrorInfo, Json, Message
from portico.kernel.state import CallPart, PendingState, QuestionPart, SessionState, Summary, TextPart, TurnState
from tests.cli.fake_host import FakeHost

AT = 1_800_000_000_000


def session(ident: str = "session-1", **fields: Any) -> Summary:
    given = {"agent": "loop", "model": "m", "cwd": "/w", "title": "Title", "status": "idle", "created": AT}
    return Summary(**{"id": ident, "modified": AT, "pos": 1, **given, **fields})


SESSIONS: dict[str, tuple[Summary, list[str]]] = {
    "idle": (session(), ["session-1", "idle", "loop", "m", when(AT), "Title"]),
    "running": (session(status="running"), ["session-1", "running", "loop", "m", when(AT), "Title"]),
    "interrupted": (session(interrupted=True), ["session-1", "interrupted", "loop", "m", when(AT), "Title"]),
    "running again": (
        session(interrupted=True, status="running"),
        ["session-1", "running", "loop", "m", when(AT), "Title"],
    ),
    "a title with a tab": (session(title="a\tb\nc"), ["session-1", "idle", "loop", "m", when(AT), "a b c"]),
    "a title that commands": (session(title="\x1b[2Jx"), ["session-1", "idle", "loop", "m", when(AT), "[2Jx"]),
}


@pytest.mark.parametrize(("of", "row"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_in_the_list(fake: FakeHost, of: Summary, row: list[str]) -> None:
    fake.answers["GET /v1/sessions"] = {"sessions": [of], "total": 1}
    assert fake.run("sessions", "list").rows == [row]


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        ([], "/v1/sessions?archived=false&limit=50"),
        (["--archived"], "/v1/sessions?archived=true&limit=50"),
        (["--limit", "3"], "/v1/sessions?archived=false&limit=3"),
    ],
)
def test_what_the_list_asks_for(fake: FakeHost, args: list[str], asked: str) -> None:
    fake.answers["GET /v1/sessions"] = {"sessions": [], "total": 0}
    done = fake.run("sessions", "list", *args)
    assert [each.path for each in fake.asked] == [asked]
    assert (done.out, done.err) == ("", "No sessions yet. Try: portico send hello\n")


TURN = TurnState(
    "t1",
    Message("do it"),
    "token:me",
    0,
    1,
    [
        TextPart("p1", "reasoning", "hm"),
        TextPart("p2", "text", "An answer."),
        CallPart("c1", "edit", "Edit x", outcome="completed"),
        CallPart("c2", "look"),
        QuestionPart("q1", "Which?"),
        QuestionPart("q2", "Sure?", response="accept"),
    ],
    outcome="failed",
    error=ErrorInfo("x", "It broke."),
)


def test_a_session_with_its_turns(fake: FakeHost) -> None:
    queue = [PendingState("m1", "queue", Message("and then"), "token:me")]
    state = SessionState("session-1", agent="loop", model="m", cwd="/w", title="Title", turns=[TURN], queue=queue)
    fake.answers["GET /v1/sessions/session-1"] = state
    assert fake.run("sessions", "show", "session-1").out.splitlines() == [
        "session-1  Title",
        "loop m  /w  failed",
        "",
        "> do it",
        "An answer.",
        "[Edit x: completed]",
        "[look: running]",
        "? Which? (open)",
        "? Sure? (accept)",
        "-- failed: It broke.",
        "",
        "queued: and then",
    ]
    assert json.loads(fake.run("sessions", "show", "session-1", "--json").out)["id"] == "session-1"


FILES = [
    {"path": "a.py", "status": "modified", "added": 3, "removed": 1, "binary": False},
    {"path": "b.py", "status": "renamed", "added": 0, "removed": 0, "binary": False, "from": "c.py"},
]


@pytest.mark.parametrize(
    ("changes", "rows", "empty"),
    [
        (
            {"git": True, "files": FILES},
            [["modified", "+3 -1", "a.py"], ["renamed", "+0 -0", "c.py -> b.py"]],
            "",
        ),
        ({"git": True, "files": []}, [], "Nothing was changed.\n"),
        ({"git": True, "files": [], "note": "Too many."}, [], "Too many.\n"),
        (
            {"git": False, "files": []},
            [],
            "The session's folder is not in a git repository. Run 'git init' there to see what changes.\n",
        ),
    ],
    ids=["files", "none", "a note", "no git"],
)
def test_what_a_session_changed(fake: FakeHost, changes: Any, rows: list[list[str]], empty: str) -> None:
    fake.answers["GET /v1/sessions/session-1/changes"] = changes
    done = fake.run("sessions", "changes", "session-1")
    assert (done.rows, done.err) == (rows, empty)


def test_the_lines_of_what_changed(fake: FakeHost) -> None:
    fake.answers["GET /v1/sessions/session-1/changes"] = {"git": True, "files": FILES}
    fake.answers["GET /v1/sessions/session-1/changes/diff"] = "+new\n"
    assert fake.run("sessions", "changes", "session-1", "--diff", "--turn", "t1").out.endswith("+new\n")
    assert fake.asked[-1].path == "/v1/sessions/session-1/changes/diff?turn=t1"
    told = json.loads(fake.run("sessions", "changes", "session-1", "--diff", "--json").out)
    assert told["diff"] == "+new\n"


@pytest.mark.parametrize(
    ("args", "path", "body"),
    [
        (["ben"], "share", {"person": "ben", "rights": ["read"]}),
        (["ben", "--right", "drive", "--right", "approve"], "share", {"person": "ben", "rights": ["drive", "approve"]}),
        (["*", "--off"], "unshare", {"person": "*"}),
    ],
)
def test_sharing_a_session(fake: FakeHost, args: list[str], path: str, body: Any) -> None:
    fake.answers[f"POST /v1/sessions/session-1/{path}"] = {"shares": {"ben": ["read", "drive"]}}
    done = fake.run("sessions", "share", "session-1", *args)
    assert (fake.asked[0].path, fake.asked[0].body) == (f"/v1/sessions/session-1/{path}", body)
    assert done.err == "session-1 is shared with ben: read, drive\n"


def test_a_right_that_there_is_not_is_not_sent(fake: FakeHost) -> None:
    done = fake.run("sessions", "share", "session-1", "ben", "--right", "own")
    assert "There is no right 'own'; choose from read, drive, approve." in str(done.error)
    assert fake.asked == []


@pytest.mark.parametrize(
    ("answer", "words", "kept"),
    [
        (204, "Deleted session-1\n", {}),
        ({"kept": "The worktree stays."}, "Deleted session-1. The worktree stays.\n", True),
    ],
    ids=["all of it", "but for its worktree"],
)
def test_deleting_says_what_stays(fake: FakeHost, answer: Any, words: str, kept: Any) -> None:
    fake.answers["DELETE /v1/sessions/session-1"] = answer
    assert fake.run("sessions", "delete", "session-1", "--yes").err == words
    told = json.loads(fake.run("sessions", "delete", "session-1", "--yes", "--json").out)
    assert told == {"deleted": ["session-1"], **({"kept": {"session-1": "The worktree stays."}} if kept else {})}


def test_nothing_is_deleted_that_nobody_was_asked_for(fake: FakeHost) -> None:
    done = fake.run("sessions", "delete", "session-1")
    assert "Say --yes if it is meant." in str(done.error)
    assert fake.asked == []


def job(**fields: Any) -> JobSummary:
    return JobSummary(
        **{"id": "job-1", "name": "nightly", "status": "running", "started": AT, "cwd": "/w", "by": "me", **fields}
    )


@pytest.mark.parametrize(
    ("of", "row"),
    [
        (job(), ["job-1", "nightly", "running", when(AT), "", "/w"]),
        (job(status="failed", ended=AT + 1_250), ["job-1", "nightly", "failed", when(AT), "1.2s", "/w"]),
    ],
    ids=["running", "failed"],
)
def test_a_job_in_the_list(fake: FakeHost, of: JobSummary, row: list[str]) -> None:
    fake.answers["GET /v1/jobs"] = {"jobs": [of]}
    assert fake.run("jobs", "list").rows == [row]


ENTRY: Json = {"tasks": {}, "jobs": {}, "grid": []}


def test_jobs_stand_newest_first(fake: FakeHost) -> None:
    fake.answers["GET /v1/jobs"] = {"jobs": [job(), job(id="job-2")]}
    assert [row[0] for row in fake.run("jobs", "list").rows] == ["job-2", "job-1"]
    assert [each["id"] for each in json.loads(fake.run("jobs", "list", "--json").out)] == ["job-2", "job-1"]


@pytest.mark.parametrize(
    ("verb", "path", "answer", "told"),
    [
        ("stop", "/v1/jobs/job-1/stop", {}, "job-1"),
        ("resume", "/v1/jobs/job-1/resume", {"job": "job-7"}, "job-7"),
        ("retry", "/v1/jobs/job-1/retry", {"job": "job-8"}, "job-8"),
    ],
)
def test_what_becomes_of_a_job_is_named(fake: FakeHost, verb: str, path: str, answer: Any, told: str) -> None:
    fake.answers[f"POST {path}"] = answer
    assert fake.run("jobs", verb, "job-1").out == f"{told}\n"
    assert json.loads(fake.run("jobs", verb, "job-1", "--json").out) == {"job": told}


def notice(state: Any = "waiting", *attempts: Attempt, **fields: Any) -> Delivery:
    told = Notice("approval", "Wants to run make", AT, session="session-1", **fields)
    return Delivery("notice-1", "phone", told, state, AT + 60_000, len(attempts), list(attempts))


@pytest.mark.parametrize(
    ("of", "state", "next", "about"),
    [
        (notice(), "waiting", when(AT + 60_000), "Wants to run make"),
        (notice("delivered", Attempt(AT)), "delivered", "", "Wants to run make"),
        (notice("waiting", Attempt(AT, "No answer.")), "waiting", when(AT + 60_000), "No answer."),
        (notice("failed", Attempt(AT, "a"), Attempt(AT, "b")), "failed", "", "b"),
    ],
    ids=["waits", "arrived", "is tried again", "was given up"],
)
def test_a_notice_in_the_list(fake: FakeHost, of: Delivery, state: str, next: str, about: str) -> None:
    fake.answers["GET /v1/notices"] = {"notices": [of]}
    assert fake.run("notices", "list").rows == [["notice-1", when(AT), "approval", "phone", state, next, about]]


@pytest.mark.parametrize(("args", "path"), [([], "/v1/notices"), (["--state", "failed"], "/v1/notices?state=failed")])
def test_notices_of_one_state(fake: FakeHost, args: list[str], path: str) -> None:
    fake.answers["GET /v1/notices"] = {"notices": []}
    done = fake.run("notices", "list", *args)
    assert (fake.asked[0].path, done.err) == (path, "No notices.\n")


HOST: dict[str, Any] = {
    "id": 1,
    "name": "box-1",
    "place": "here",
    "labels": ["gpu", "big"],
    "state": "ready",
    "sessions": 3,
    "running": 1,
    "capacity": 4,
    "version": "0.2.0",
    "seen": AT,
    "here": True,
}
HOST_ROW = ["*box-1", "here", "gpu, big", "ready", "3", "1/4", "0.2.0", when(AT)]


@pytest.mark.parametrize(
    ("hosts", "rows"),
    [
        ([HOST], [HOST_ROW]),
        ([{**HOST, "here": False}], [["box-1", *HOST_ROW[1:]]]),
        ([], []),
    ],
    ids=["this one", "another one", "alone"],
)
def test_the_hosts_on_one_log(fake: FakeHost, hosts: list[Any], rows: list[list[str]]) -> None:
    fake.answers["GET /v1/hosts"] = {"hosts": hosts}
    done = fake.run("hosts", "list")
    assert done.rows == rows
    assert ("alone on its log" in done.err) is (not hosts)


@pytest.mark.parametrize(
    ("found", "rows", "empty"),
    [
        (
            [{"session": "s", "action": "delete", "owner": "", "idle_days": 40, "title": "T"}],
            [["s", "delete", "-", "40", "T"]],
            "",
        ),
        ([], [], "Nothing to do.\n"),
    ],
)
def test_what_retention_would_do(fake: FakeHost, found: Any, rows: list[list[str]], empty: str) -> None:
    fake.answers["POST /v1/retention"] = {"dry_run": True, "sessions": found}
    done = fake.run("retention", "--dry-run")
    assert (done.rows, done.err) == (rows, empty)
    assert fake.asked[0].body == {"dry_run": True}


SUM = {"key": {"agent": "loop"}, "turns": 2, "input": 1234, "cached": 0, "output": 56, "cost": 1.5}


@pytest.mark.parametrize(
    ("sums", "out", "err"),
    [
        ([SUM], "loop\t2\t1,234\t0\t56\t$1.50\n", ""),
        ([], "", "Nothing was used in 30 days.\n"),
        (
            [{**SUM, "estimated": 0.5}],
            "loop\t2\t1,234\t0\t56\t~$2.00\n",
            "~: estimated by the list prices of list 1 (2026-01-01).\n   a is priced as b.\n",
        ),
        ([{**SUM, "key": {"agent": ""}}], "-\t2\t1,234\t0\t56\t$1.50\n", ""),
    ],
    ids=["told", "nothing", "estimated", "without a name"],
)
def test_what_was_used(fake: FakeHost, sums: Any, out: str, err: str) -> None:
    fake.answers["GET /v1/usage"] = {
        "sums": sums,
        "prices": "list 1",
        "prices_date": "2026-01-01",
        "priced_as": {"a": "b"},
    }
    done = fake.run("usage", "--by", "agent")
    assert (done.out, done.err) == (out, err)


def test_what_the_host_refuses_is_an_error_with_its_code(fake: FakeHost) -> None:
    error = fake.run("jobs", "show", "job-9").error
    assert isinstance(error, RemoteError)
    assert (error.code, error.status) == ("not_found", 404)


def test_a_job_with_its_works_and_why_one_failed(fake: FakeHost) -> None:
    works = [
        WorkSummary(work=0, name="build", task="task-1", status="succeeded", started=AT),
        WorkSummary(work=1, name="test", task="task-2", status="failed", started=AT),
    ]
    shown = job(status="failed", ended=AT + 2_000, error="It broke.", origin="job-0", works=works)
    fake.answers["GET /v1/jobs/job-1"] = {**msgspec.to_builtins(shown), "entry": ENTRY}
    fake.answers["GET /v1/sessions"] = {"sessions": []}
    decided = {"event": {"type": "task.decided", "reason": "2 tests\nfailed"}}
    fake.answers["GET /v1/events"] = {"events": [decided, {"event": {"type": "task.started"}}]}
    assert fake.run("jobs", "show", "job-1").out.splitlines() == [
        "job-1 nightly: failed 2.0s",
        "in /w",
        "from job-0",
        "It broke.",
        "  [0] build: succeeded (task-1)",
        "  [1] test: failed (task-2)",
        "      2 tests",
        "      failed",
    ]


ROW = {
    "path": "r",
    "work": 0,
    "step": "a",
    "name": "GET /",
    "kind": "http",
    "task": "task-1",
    "status": "succeeded",
    "started": AT,
    "ended": AT,
}


@pytest.mark.parametrize("rows", [[], [ROW]], ids=["an entry", "a workflow"])
def test_the_hosts_that_a_job_reached(fake: FakeHost, rows: Any) -> None:
    """Those of a workflow were not printed."""
    use = HostUse("api.test", 443, 2, 0, 10, 20, AT, AT, ["policy"])
    shown = {**msgspec.to_builtins(job(status="succeeded")), "entry": ENTRY, "rows": rows}
    fake.answers["GET /v1/jobs/job-1"] = {**shown, "network": [msgspec.to_builtins(use)]}
    fake.answers["GET /v1/sessions"] = {"sessions": []}
    assert fake.run("jobs", "show", "job-1").out.splitlines()[-1].split("\t")[:5] == [
        "api.test:443",
        "2",
        "0",
        "10 B",
        "20 B",
    ]
