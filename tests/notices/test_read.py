"""Which events are told to people, in which words, and what takes a question back: every kind of event in one table."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from portico.features.automations import events as ae
from portico.features.budgets.budgets import WARNED
from portico.features.budgets.question import FINISH, RAISE, STOP
from portico.features.jobs import events as je
from portico.features.notices.notice import WAITS, Attempt, Delivery, Notice, tried
from portico.features.notices.read import read_notice, settled
from portico.kernel import events as e
from portico.kernel.events import Event, Message, Record
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import host_of

BASE = "https://box.example"
PROMPT = ae.PromptAction(text="look", cwd="/src/a")


def job(by: str = "token:ada") -> je.JobStarted:
    return je.JobStarted("job-1", "nightly", {}, "/src/a", by)


def claimed(**more: object) -> ae.RunClaimed:
    return ae.RunClaimed("run-1", "automation-1", "morning", "schedule", 0, "t", **more)  # type: ignore[arg-type]


def created() -> ae.AutomationCreated:
    return ae.AutomationCreated("automation-1", "morning", ae.AutomationPlan(prompt=PROMPT), "t", [])


async def last_notice(host: Host, channel: str, events: Sequence[Event]) -> Notice | None:
    """What the last of these events tells, when they are all there is in the channel."""
    await host.log.append(channel, *events)
    return await read_notice(host, (await host.log.read(channel))[-1], BASE)


@pytest.mark.parametrize(
    ("channel", "events", "kind", "text", "link"),
    [
        pytest.param(
            "job/job-1",
            [job(), je.JobEnded("job-1", "succeeded", "host")],
            "job_done",
            "The job 'nightly' is done.",
            "/app/j/job-1",
            id="a job is done",
        ),
        pytest.param(
            "job/job-1",
            [job(), je.JobEnded("job-1", "failed", "host", "2 of 9 checks")],
            "job_failed",
            "The job 'nightly' failed. 2 of 9 checks",
            "/app/j/job-1",
            id="a job failed",
        ),
        pytest.param(
            "job/job-1", [job(), je.JobEnded("job-1", "canceled", "t")], "", "", "", id="who cancels it knows"
        ),
        pytest.param(
            "job/job-1",
            [job("run:run-1"), je.JobEnded("job-1", "failed", "host")],
            "",
            "",
            "",
            id="a run tells of its job",
        ),
        pytest.param(
            "job/job-1",
            [job("run:run-1"), je.JobWaiting("The task was interrupted.")],
            "question",
            "The task was interrupted.",
            "/app/j/job-1",
            id="a run's job asks",
        ),
        pytest.param(
            "job/job-1",
            [job(), je.JobWaiting("There is no host with gpu.", "label")],
            "question",
            "There is no host with gpu.",
            "/app/j/job-1",
            id="a job that no host can do",
        ),
        pytest.param("job/job-1", [job(), je.JobWaiting("It goes on.", "host")], "", "", "", id="a job handed over"),
        pytest.param("job/job-1", [je.JobEnded("job-1", "failed", "host")], "", "", "", id="a job whose start is lost"),
        pytest.param(
            "run/run-1",
            [claimed(prompt=PROMPT), ae.RunEnded("succeeded")],
            "automation_done",
            "The automation 'morning' is done.",
            "/app/automations/automation-1",
            id="a run is done",
        ),
        pytest.param(
            "run/run-1",
            [claimed(job=ae.JobAction("main", "/src/a")), ae.RunEnded("failed", "It broke.")],
            "automation_failed",
            "The automation 'morning' failed. It broke.",
            "/app/automations/automation-1",
            id="a run failed",
        ),
        pytest.param(
            "run/run-1",
            [claimed(prompt=PROMPT), ae.RunEnded("interrupted", "The host stopped.")],
            "automation_failed",
            "The automation 'morning' was interrupted. The host stopped.",
            "/app/automations/automation-1",
            id="a run was interrupted",
        ),
        pytest.param("run/run-1", [claimed(prompt=PROMPT), ae.RunEnded("canceled")], "", "", "", id="a canceled run"),
        pytest.param(
            "automation/automation-1",
            [created(), ae.AutomationPaused("host", "5 runs failed in a row.", failed=True)],
            "automation_failed",
            "The automation 'morning' has paused itself: 5 runs failed in a row.",
            "/app/automations/automation-1",
            id="failed too often",
        ),
        pytest.param(
            "automation/automation-1",
            [created(), ae.AutomationPaused("host", "It ends at 2027-01-01.")],
            "",
            "",
            "",
            id="it was to end",
        ),
        pytest.param(
            "automation/automation-1",
            [created(), ae.AutomationPaused("token:ada", failed=True)],
            "",
            "",
            "",
            id="somebody paused it",
        ),
        pytest.param("host", [e.Audited("token.made", "t", {"session": "session-1"})], "", "", "", id="another audit"),
        pytest.param(
            "host",
            [e.Audited(WARNED, "host", {"session": "session-99", "words": "80 %"})],
            "",
            "",
            "",
            id="the session was deleted",
        ),
    ],
)
async def test_what_is_told_of_jobs_and_automations(
    host: Host, channel: str, events: list[Event], kind: str, text: str, link: str
) -> None:
    notice = await last_notice(host, channel, events)
    if not kind:
        assert notice is None
        return
    assert notice is not None
    assert (notice.kind, notice.text, notice.link) == (kind, text, BASE + link)
    if not isinstance(events[-1], ae.AutomationPaused):
        assert notice.folder == "/src/a"


# -- of sessions -----------------------------------------------------------------------------------------------


async def silent(message: Message, turn: Turn) -> None:
    pass


@pytest.fixture
async def session(open_host: HostOpener, tmp_path: Path) -> Session:
    opened = await open_host(PlayAgent(silent))
    return await opened.start(by="test", agent="play", cwd=str(tmp_path), title="Flaky test")


def turn(ident: str = "turn-1", by: str = "token:ada") -> e.TurnStarted:
    return e.TurnStarted(ident, Message("go"), by)


def approval(title: str) -> e.ApprovalAsked:
    return e.ApprovalAsked("turn-1", "a/1", "c-1", "shell", title, "execute", "{}", 0, [])


def budget_fields() -> list[e.Json]:
    return [{"options": [{"id": RAISE}, {"id": FINISH}, {"id": STOP}]}]


ENDS: list[tuple[str, e.TurnEnded, str, str]] = [
    ("token:ada", e.TurnEnded("turn-1", "completed"), "turn_done", "The agent is done."),
    ("token:ada", e.TurnEnded("turn-1", "failed", e.ErrorInfo("x", "It broke.")), "turn_failed", "It broke."),
    ("token:ada", e.TurnEnded("turn-1", "failed"), "turn_failed", "The turn was failed."),
    ("token:ada", e.TurnEnded("turn-1", "interrupted"), "turn_failed", "The turn was interrupted."),
    ("token:ada", e.TurnEnded("turn-1", "cancelled"), "", ""),
    ("token:ada", e.TurnEnded("turn-99", "completed"), "", ""),
    ("task:task-1", e.TurnEnded("turn-1", "failed"), "", ""),
    ("run:run-1", e.TurnEnded("turn-1", "completed"), "", ""),
]


@pytest.mark.parametrize(("by", "end", "kind", "text"), ENDS)
async def test_what_is_told_of_a_turn(session: Session, by: str, end: e.TurnEnded, kind: str, text: str) -> None:
    notice = await last_notice(host_of(session), session.channel, [turn(by=by), end])
    assert (notice.kind, notice.text) == (kind, text) if notice is not None else not kind
    if notice is not None:
        assert notice.link == f"{BASE}/app/s/{session.id}"
        assert (notice.title, notice.agent, notice.about) == ("Flaky test", "play", session.id)


async def test_the_answered_question_of_a_job_is_no_turn_that_is_done(open_host: HostOpener, tmp_path: Path) -> None:
    """A person who had answered it got a second notice: the agent is done."""
    host = await open_host(PlayAgent(silent))
    session = await host.start(by="task:task-1", agent="play", cwd=str(tmp_path), title="main: Way?")
    events = [turn(by="agent"), e.TurnEnded("turn-1", "completed")]
    assert await last_notice(host, session.channel, events) is None


@pytest.mark.parametrize(
    ("asked", "kind", "text", "ask"),
    [
        (approval("Run make?"), "approval", "Run make?", "a/1"),
        (approval(""), "approval", "shell", "a/1"),
        (e.QuestionAsked("turn-1", "q 1", "Which one?", []), "question", "Which one?", "q 1"),
        (e.QuestionAsked("turn-1", "q-1", "Go on?", budget_fields()), "budget", "Go on?", "q-1"),
        (e.QuestionAsked("turn-1", "q-1", "Go on?", budget_fields() * 2), "question", "Go on?", "q-1"),
    ],
)
async def test_what_waits_leads_to_its_card(session: Session, asked: Event, kind: str, text: str, ask: str) -> None:
    notice = await last_notice(host_of(session), session.channel, [turn(), asked])
    assert notice is not None
    assert (notice.kind, notice.ask) == (kind, ask)
    assert text in notice.text
    assert notice.link == f"{BASE}/app/inbox/{ask.replace('/', '%2F').replace(' ', '%20')}"


async def test_what_leaves_the_machine_is_short_and_without_secrets(session: Session) -> None:
    secret = "ghp_" + "a1B2" * 9
    words = e.ErrorInfo("x", f"git push https://ada:{secret}@example.org failed: " + "x" * 1_000)
    notice = await last_notice(host_of(session), session.channel, [turn(), e.TurnEnded("turn-1", "failed", words)])
    assert notice is not None
    assert secret not in notice.text
    assert (len(notice.text), notice.text[-1]) == (300, "…")


# -- what takes it back, and what an attempt leaves ------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "event", "answered"),
    [
        ("session/s-1", e.ApprovalAnswered("turn-1", "a-1", True, "t"), ("s-1", "a-1")),
        ("session/s-1", e.QuestionAnswered("turn-1", "q-1", "accept", "t"), ("s-1", "q-1")),
        ("session/s-1", e.TurnEnded("turn-1", "completed"), ("s-1", "")),
        ("job/job-1", je.JobResumed("t"), ("job-1", "")),
        ("job/job-1", je.JobEnded("job-1", "failed", "host"), ("job-1", "")),
        ("job/job-1", je.JobWaiting("why"), None),
        ("run/run-1", ae.RunEnded("failed"), None),
    ],
)
def test_what_settles_a_question(channel: str, event: Event, answered: tuple[str, str] | None) -> None:
    assert settled(Record(1, channel, 1, 0, b"", event)) == answered


def test_attempts_are_a_day_apart_in_all_and_then_given_up() -> None:
    delivery, now = Delivery("n", "x", Notice("test", "", 0)), 1_000_000
    for wait in WAITS:
        tried(delivery, now, "no answer")
        assert (delivery.state, delivery.next) == ("waiting", now + wait * 1000)
        now = delivery.next
    tried(delivery, now, "no answer")
    assert (delivery.state, delivery.tries, len(delivery.attempts)) == ("failed", len(WAITS) + 1, len(WAITS) + 1)
    assert 23.5 <= (now - 1_000_000) / 3_600_000 <= 24.5


def test_an_attempt_that_arrives_ends_it() -> None:
    delivery = Delivery("n", "x", Notice("test", "", 0), tries=3)
    tried(delivery, 7)
    assert (delivery.state, delivery.attempts, delivery.tries) == ("delivered", [Attempt(7)], 4)
