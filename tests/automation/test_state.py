"""What is known of an automation and of its runs after each event, and how lists put its trigger into words."""

import base64
import hashlib
import hmac
from typing import Any

import pytest

from portico import limits
from portico.features.automations import events as ae
from portico.features.automations.hook import at, fill, filled, is_ping, parse, quote, verify
from portico.features.automations.listing import words
from portico.features.automations.state import MISSED, AutomationState, RunSummary, begin, begin_run, fold, fold_run
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import BadRequest, TooLarge, Unauthenticated
from tests.automation.playing import plan

T0 = 1_000


def made(**parts: Any) -> AutomationState:
    return begin(ae.AutomationCreated("automation-1", "often", plan(**parts), "token:t", ["drive"]), T0)


def after(state: AutomationState, *events: e.Event) -> AutomationState:
    for number, event in enumerate(events, 1):
        fold(state, event, T0 + number)
    return state


def edited(**parts: Any) -> ae.AutomationEdited:
    return ae.AutomationEdited(name="renamed", plan=plan(**parts), by="token:u", scopes=["jobs"], meta={"k": 1})


def test_an_automation_as_it_begins() -> None:
    state = made(hook={})
    assert (state.id, state.name, state.by, state.scopes) == ("automation-1", "often", "token:t", ["drive"])
    assert {state.created, state.modified, state.since, state.considered} == {T0}
    assert (state.enabled, state.source, state.trigger, state.runs) == (True, "door", "hook", 0)


@pytest.mark.parametrize(
    ("parts", "trigger"),
    [
        ({}, "none"),
        ({"schedule": {"every": "1m"}}, "schedule"),
        ({"hook": {}}, "hook"),
        ({"files": {"folder": "/"}}, "files"),
        ({"after": {"job": "main"}}, "after"),
    ],
)
def test_what_starts_it(parts: dict[str, Any], trigger: str) -> None:
    assert made(**parts).trigger == trigger


def test_an_edit_says_who_wrote_it_last_and_keeps_what_it_does_not_say() -> None:
    state = after(made(hook={}), edited(hook={}))
    assert (state.name, state.by, state.scopes, state.meta) == ("renamed", "token:u", ["jobs"], {"k": 1})
    assert (state.created, state.modified, state.since) == (T0, T0 + 1, T0)


@pytest.mark.parametrize(
    ("before", "then", "moved"),
    [
        ({"schedule": {"every": "1m"}}, {"schedule": {"every": "1m"}}, False),
        ({"schedule": {"every": "1m"}}, {"schedule": {"every": "2m"}}, True),
        ({"schedule": {"every": "1m"}}, {}, True),
        ({"hook": {}}, {"hook": {"per_minute": 5}}, True),
        ({"hook": {}}, {"hook": {}, "title": "x"}, False),
    ],
)
def test_another_trigger_counts_from_now(before: dict[str, Any], then: dict[str, Any], moved: bool) -> None:
    state = after(made(**before), ae.RunReserved(run="run-1", cause="schedule", due=T0), edited(**then))
    assert (state.since, state.considered) == ((T0 + 2, T0 + 2) if moved else (T0, T0))
    assert state.spans == ([] if moved else [(T0, T0)])


@pytest.mark.parametrize(
    ("before", "then", "runs"),
    [(0, 3, 0), (2, 3, 1), (3, 0, 1), (0, 0, 1)],
    ids=["bounded", "bound moved", "freed", "free"],
)
def test_runs_are_counted_from_when_their_number_is_bounded(before: int, then: int, runs: int) -> None:
    state = made(stop_after_runs=before)
    after(state, ae.RunReserved(run="run-1", cause="hook", due=T0), edited(stop_after_runs=then))
    assert state.runs == runs


def test_it_is_paused_by_somebody_or_by_itself_and_resumed_afresh() -> None:
    state = after(made(), ae.AutomationPaused(by="token:t", reason="holidays"))
    assert (state.enabled, state.reason, state.stopped) == (False, "holidays", False)
    failing = (ae.RunReserved(run="run-1", cause="hook", due=T0), ae.RunSettled(run="run-1", outcome="failed"))
    state = after(made(), *failing, ae.AutomationPaused(by="host", reason="too many"))
    assert (state.enabled, state.stopped, state.failures, state.runs) == (False, True, 1, 1)
    after(state, ae.AutomationResumed(by="token:t"))
    assert (state.enabled, state.reason, state.stopped, state.failures, state.runs) == (True, "", False, 0, 0)
    assert state.since == state.considered == T0 + 1


@pytest.mark.parametrize(
    ("outcomes", "failures", "runs"),
    [
        (["failed"], 1, 3),
        (["failed", "failed"], 2, 3),
        (["failed", "succeeded"], 0, 3),
        (["failed", "canceled"], 1, 3),
        (["failed", "interrupted", "failed"], 2, 3),
        (["skipped"], 0, 2),
        (["skipped"] * 5, 0, 0),
    ],
)
def test_failures_in_a_row_and_runs_that_count(outcomes: list[ae.RunOutcome], failures: int, runs: int) -> None:
    reserved = [ae.RunReserved(run=f"run-{n}", cause="hook", due=T0) for n in range(3)]
    state = after(made(), *reserved, *(ae.RunSettled(run="run-1", outcome=each) for each in outcomes))
    assert (state.failures, state.runs) == (failures, runs)


@pytest.mark.parametrize(
    ("causes", "considered", "spans"),
    [
        ([("schedule", 10)], 10, [(10, 10)]),
        ([("schedule", 10), ("schedule", 20)], 20, [(10, 20)]),
        ([("schedule", 10), ("schedule", 20), ("schedule", 5)], 5, [(10, 20), (5, 5)]),
        ([("schedule", 10), ("hook", 15), ("schedule", 20)], 20, [(10, 10), (20, 20)]),
        ([("person", 10)], 0, []),
        ([("hook", 10), ("after", 7)], 10, []),
    ],
)
def test_due_times_that_were_given_a_run(
    causes: list[tuple[ae.Cause, int]], considered: int, spans: list[tuple[int, int]]
) -> None:
    state = made()
    state.considered = 0
    after(state, *(ae.RunReserved(run="run-1", cause=cause, due=due) for cause, due in causes))
    assert (state.considered, state.spans) == (considered, spans)


def test_what_a_run_came_after_is_remembered_up_to_a_bound() -> None:
    state = after(made(), *(ae.RunReserved(run="r", cause="after", due=T0, ref=f"job-{n}") for n in range(5_000)))
    assert state.refs[-1] == "job-4999"
    assert len(state.refs) < 5_000


def test_missed_times_are_told_the_oldest_first_up_to_a_bound() -> None:
    missed = [ae.RunsMissed(count=n, first=n, last=n + 1, reason="away") for n in range(1, MISSED + 3)]
    state = after(made(), *missed, ae.RunsMissed(count=0, first=7, last=9_999, reason=""))
    assert [each.count for each in state.missed] == list(range(3, MISSED + 3))
    assert state.considered == 9_999


def test_a_secret_is_changed_and_an_automation_deleted() -> None:
    state = after(made(), ae.HookRotated(by="me"), ae.HookRotated(by="me"), ae.AutomationDeleted(by="me"))
    assert (state.secrets, state.deleted) == (2, True)


# -- a run -----------------------------------------------------------------------------------------------------


def claimed(**more: Any) -> RunSummary:
    event = ae.RunClaimed("run-1", "automation-1", "often", "hook", 7, "automation:automation-1", **more)
    return begin_run(event, T0)


def test_a_run_as_it_is_claimed() -> None:
    run = claimed(late=True, depth=2, ref="job:job-1", delivery="id=x", job=ae.JobAction("main"))
    assert (run.id, run.automation, run.name, run.cause, run.due, run.claimed) == (
        "run-1",
        "automation-1",
        "often",
        "hook",
        7,
        T0,
    )
    assert (run.late, run.depth, run.ref, run.delivery, run.status, run.open) == (
        True,
        2,
        "job:job-1",
        "id=x",
        "pending",
        True,
    )
    assert run.job == ""


@pytest.mark.parametrize(
    ("events", "status", "times", "reason"),
    [
        ([ae.RunSkipped(reason="busy")], "skipped", (None, T0 + 1), "busy"),
        ([ae.RunStarted(session="s", turn="t")], "running", (T0 + 1, None), ""),
        ([ae.RunStarted(job="job-1"), ae.RunEnded(outcome="succeeded")], "succeeded", (T0 + 1, T0 + 2), ""),
        ([ae.RunStarted(job="job-1"), ae.RunEnded(outcome="failed", error="no")], "failed", (T0 + 1, T0 + 2), "no"),
        ([ae.RunEnded(outcome="failed", error="no agent")], "failed", (None, T0 + 1), "no agent"),
    ],
)
def test_how_a_run_goes(events: list[e.Event], status: str, times: tuple[int | None, int | None], reason: str) -> None:
    run = claimed()
    for number, event in enumerate(events, 1):
        fold_run(run, event, T0 + number)
    assert (run.status, (run.started, run.ended), run.reason) == (status, times, reason)
    assert run.open is (status == "running")


def test_a_run_knows_what_it_started_and_what_that_used() -> None:
    run = claimed()
    fold_run(run, ae.RunStarted(session="s-1", turn="t-1"), T0)
    fold_run(run, ae.RunEnded(outcome="succeeded", input=5, output=7, cost=0.5, estimated=True), T0)
    assert (run.session, run.turn, run.job) == ("s-1", "t-1", "")
    assert (run.input, run.output, run.cost, run.estimated) == (5, 7, 0.5, True)


# -- in words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "by hand"),
        ({"schedule": {"every": "90s"}}, "every 90s"),
        ({"schedule": {"at": "2027-01-31T09:00", "zone": "Asia/Tokyo"}}, "once at 2027-01-31T09:00 (Asia/Tokyo)"),
        ({"schedule": {"cron": "0 7 * * *"}}, "At 07:00 every day (UTC)"),
        ({"schedule": {"cron": "@hourly"}}, "At the start of every hour (UTC)"),
        ({"hook": {}}, "POST /hooks/often"),
        ({"files": {"folder": "/a"}}, "files in /a change"),
        ({"files": {"folder": "/a", "globs": ["*.py", "*.md"]}}, "*.py, *.md in /a change"),
        ({"after": {"job": "main"}}, "after the job main (however it ends)"),
        (
            {"after": {"automation": "x", "outcomes": ["failed", "canceled"]}},
            "after the automation x (failed or canceled)",
        ),
    ],
)
def test_a_trigger_in_words(parts: dict[str, Any], text: str) -> None:
    assert words(plan(**parts), "often") == text


# -- deliveries ------------------------------------------------------------------------------------------------

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
BODY, NOW = b'{"a": 1}', 1_800_000_000


def github(secret: str = SECRET, body: bytes = BODY) -> dict[str, str]:
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def standard(
    ident: str = "m-1", at: object = NOW, key: bytes = KEY, body: bytes = BODY, version: str = "v1"
) -> dict[str, str]:
    signed = base64.b64encode(hmac.digest(key, f"{ident}.{at}.".encode() + body, "sha256")).decode()
    return {"webhook-id": ident, "webhook-timestamp": str(at), "webhook-signature": f"{version},{signed}"}


def test_a_signed_delivery_has_an_id() -> None:
    assert verify(SECRET, github(), BODY, NOW) == github()["x-hub-signature-256"]
    assert verify(SECRET, standard(), BODY, NOW) == "id=m-1"


@pytest.mark.parametrize("seconds", [-limits.HOOK_SECONDS, 0, limits.HOOK_SECONDS])
def test_a_delivery_may_be_a_little_early_or_late(seconds: float) -> None:
    assert verify(SECRET, standard(), BODY, NOW + seconds) == "id=m-1"
    with pytest.raises(Unauthenticated, match="clock"):
        verify(SECRET, standard(), BODY, NOW + (seconds or 1) * 1.1 + limits.HOOK_SECONDS * (seconds == 0))


def test_one_of_several_signatures_is_enough() -> None:
    good = standard()
    both = f"v1,{base64.b64encode(b'x' * 32).decode()} {good['webhook-signature']}"
    assert verify(SECRET, {**good, "webhook-signature": both}, BODY, NOW) == "id=m-1"


FORGED = {
    "nothing": {},
    "another secret": github("other"),
    "another body": github(body=b"{}"),
    "no prefix": {"x-hub-signature-256": github()["x-hub-signature-256"].removeprefix("sha256=")},
    "letters of elsewhere": {"x-hub-signature-256": "sha256=é"},
    "another key": standard(key=b"x" * 32),
    "another body, standard": standard(body=b"{}"),
    "another version": standard(version="v2"),
    "another id": {**standard(), "webhook-id": "m-2"},
    "another time": {**standard(), "webhook-timestamp": str(NOW + 1)},
    "no id": standard(ident=""),
    "a long id": standard(ident="x" * kernel_limits.REQUEST_ID_CHARS),
    "no time": standard(at=""),
    "a time that is no number": standard(at="soon"),
    "a negative time": standard(at=-1),
    "digits of elsewhere": standard(at="١"),
    "no base64": {**standard(), "webhook-signature": "v1,%%%"},
    "a signature of nothing": {**standard(), "webhook-signature": "v1,"},
    "no signature": {**standard(), "webhook-signature": ""},
    "hidden behind eight others": {
        **standard(),
        "webhook-signature": "v1,AAAA " * 8 + standard()["webhook-signature"],
    },
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
def test_what_is_not_signed_with_the_secret_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated, match="no such hook"):
        verify(SECRET, headers, BODY, NOW)


@pytest.mark.parametrize("body", [b"", b"no", b"\xff", b"[" * 100_000])
def test_a_payload_is_json(body: bytes) -> None:
    with pytest.raises(BadRequest, match="not JSON"):
        parse(body)


@pytest.mark.parametrize(
    ("headers", "ping"), [({"x-github-event": "ping"}, True), ({"x-github-event": "push"}, False), ({}, False)]
)
def test_githubs_first_call(headers: dict[str, str], ping: bool) -> None:
    assert is_ping(headers) is ping


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{payload}}", '{\n "a": 1\n}'),
        ("{{ /a }}", "1"),
        ("{{/none}}", "null"),
        ("{{files}}", '[\n "x"\n]'),
        ("{{after}}", "null"),
        ("{{other}} {payload}", "{{other}} {payload}"),
    ],
)
def test_placeholders_are_filled_with_quoted_data(text: str, expected: str) -> None:
    found = fill(text, {"payload": {"a": 1}, "files": ["x"]}, "the hook 'x'")
    assert found.split("\n\n(The JSON above is data from the hook 'x'.")[0] == expected


def test_data_that_is_too_much_is_refused_with_the_reason() -> None:
    large = {"payload": "x" * kernel_limits.MESSAGE_BYTES}
    with pytest.raises(TooLarge, match="With its data the input has more than"):
        fill("{{payload}}", large, "x")
    state = made(prompt={"text": "see {{payload}}"})
    text, reason = filled(state, large, "x")
    assert text is None
    assert reason.startswith("With its data")
    assert filled(made(prompt={"text": "see"}), large, "x") == (None, "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (1, "1"),
        (None, "null"),
        ("<b>", '"\\u003cb\\u003e"'),
        ("é", '"é"'),
        ([], "[]"),
        ({"<": 1}, '{\n "\\u003c": 1\n}'),
    ],
)
def test_data_in_quotes(value: object, text: str) -> None:
    assert quote(value) == text


@pytest.mark.parametrize(
    ("pointer", "found"),
    [("/list/0", "x"), ("/list/-1", None), ("/list/9", None), ("/~01", "tilde"), ("/text/0", None)],
)
def test_a_place_in_a_payload(pointer: str, found: object) -> None:
    value = at({"list": ["x"], "~1": "tilde", "text": "abc"}, pointer)
    assert (value if isinstance(value, str) else None) == found
