"""What a session counts to: the job and the automation that began it, and who pays for them."""

import pytest

from portico.features.automations import events as ae
from portico.features.jobs import events as je
from portico.features.usage.lineage import Lineage, Lineages
from portico.features.usage.usage_index import UsageIndex, count
from portico.kernel import events as e
from portico.kernel.events import Budget, Event, Record
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import SessionState, TurnState, Usage
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle

BUDGET = Budget(dollars=2.0)
JOB = je.JobStarted(
    job="job-1", name="nightly", entry={"jobs": {"nightly": {"budget": {"dollars": 2.0}}}}, cwd="/", by="token:ada"
)
TASK = je.TaskStarted(task="task-1", name="t", model="m", by="token:bob", job="job-1")
LONE = je.TaskStarted(task="task-1", name="t", model="m", by="token:bob")
RUN = ae.RunClaimed(
    run="run-1",
    automation="a-1",
    name="morning",
    cause="schedule",
    due=0,
    by="automation",
    author="person:cleo",
    budget=Budget(dollars=5.0),
)


@pytest.fixture
async def host(open_host: HostOpener) -> Host:
    return await open_host(PlayAgent(idle))


async def lineage_of(host: Host, by: str, *events: tuple[str, Event]) -> Lineage:
    for channel, event in events:
        await host.log.append(channel, event)
    session = await host.start(by=by, cwd="/")
    return await Lineages(host).of(session)


@pytest.mark.parametrize(
    ("by", "events", "found"),
    [
        ("token:ada", [], Lineage(spender="token:ada")),
        ("client:c1#5.chat/turnStarted", [], Lineage()),
        ("host", [], Lineage()),
        ("person:ada", [], Lineage(spender="ada")),
        ("task:task-1", [], Lineage()),
        ("task:task-1", [("task/task-1", LONE)], Lineage(spender="token:bob")),
        (
            "task:task-1",
            [("task/task-1", TASK), ("job/job-1", JOB)],
            Lineage(job="job-1", spender="token:ada", job_budget=BUDGET),
        ),
        ("run:run-1", [], Lineage(run="run-1")),
        (
            "run:run-1",
            [("run/run-1", RUN)],
            Lineage(run="run-1", automation="morning", spender="cleo", run_budget=Budget(dollars=5.0)),
        ),
        (
            "task:task-1",
            [
                ("task/task-1", TASK),
                ("job/job-1", je.JobStarted(job="job-1", name="nightly", entry={}, cwd="/", by="run:run-1")),
                ("run/run-1", RUN),
            ],
            Lineage("job-1", "run-1", "morning", "cleo", Budget(), Budget(dollars=5.0)),
        ),
    ],
    ids=[
        "a token",
        "an editor",
        "the host",
        "a person",
        "a task that is gone",
        "a task of its own",
        "a task of a job",
        "a run that is gone",
        "a run",
        "a job of a run",
    ],
)
async def test_who_pays_for_a_session(host: Host, by: str, events: list[tuple[str, Event]], found: Lineage) -> None:
    assert await lineage_of(host, by, *events) == found


async def test_it_is_remembered_when_the_run_is_gone(host: Host) -> None:
    """The runs of an automation go before the sessions that they began."""
    found = await lineage_of(host, "run:run-1", ("run/run-1", RUN))
    (session,) = host.catalogue.live()
    await host.log.flush()
    stored = await host.log.get_kv(session.channel, "lineage")
    assert stored is not None
    await host.log.delete("run/run-1")
    assert await Lineages(host).of(session) == found


async def test_a_sub_agent_counts_to_who_began_the_conversation(host: Host) -> None:
    root = await host.start(by="token:ada", cwd="/")
    child = await host.start(by="agent", cwd="/", parent=root.id)
    assert (await Lineages(host).of(child)).spender == "token:ada"


async def test_what_was_just_committed_is_not_read_again(host: Host) -> None:
    lineages = Lineages(host)
    lineages.note_begun(Record(1, "run/run-1", 1, 0, b"", RUN))
    lineages.note_begun(Record(2, "run/run-2", 2, 0, b"", RUN))
    assert (await lineages.of(await host.start(by="run:run-1", cwd="/"))).automation == "morning"
    later = await lineages.of(await host.start(by="run:run-2", cwd="/"))
    assert later == Lineage(run="run-2"), "only the first event of a channel says how it began"


async def test_the_sessions_of_a_job_and_of_a_run(host: Host) -> None:
    await host.log.append("job/job-1", JOB, je.WorkStarted(path="0", work=0, task="task-1"))
    by_task = await host.start(by="task:task-1", cwd="/")
    by_run = await host.start(by="run:run-1", cwd="/")
    await host.start(by="token:ada", cwd="/")
    await host.start(by="task:task-9", cwd="/")
    lineages, lineage = Lineages(host), Lineage("job-1", "run-1")

    async def found(of: Lineage, *, whole_run: bool) -> set[str]:
        return {each.id for each in await lineages.sessions_of(of, whole_run=whole_run)}

    assert await found(lineage, whole_run=False) == {by_task.id}
    assert await found(lineage, whole_run=True) == {by_task.id, by_run.id}
    assert await found(Lineage(run="run-1"), whole_run=True) == {by_run.id}
    assert await found(Lineage(run="run-1"), whole_run=False) == set()


def turn(ident: str, day: int, **used: float | str) -> TurnState:
    usage = Usage(**used) if used else None  # type: ignore[arg-type]
    return TurnState(ident, e.Message("hi"), "token:ada", day * 86_400_000 + 3_600_000, 1, usage=usage)


@pytest.mark.parametrize(
    ("turns", "rows"),
    [
        ([], []),
        ([turn("t1", 0)], [("1970-01-01", "small", 1, 0, 0.0, 1)]),
        ([turn("t1", 0, input=5), turn("t2", 0, input=7)], [("1970-01-01", "small", 2, 12, 0.0, 2)]),
        (
            [turn("t1", 0, input=5), turn("t2", 1, input=7)],
            [("1970-01-01", "small", 1, 5, 0.0, 1), ("1970-01-02", "small", 1, 7, 0.0, 1)],
        ),
        (
            [turn("t1", 0, input=5, model="large"), turn("t2", 0, input=7)],
            [("1970-01-01", "large", 1, 5, 0.0, 1), ("1970-01-01", "small", 1, 7, 0.0, 1)],
        ),
        ([turn("t1", 0, cost=0.5), turn("t2", 0, cost=0.25)], [("1970-01-01", "small", 2, 0, 0.75, 0)]),
    ],
    ids=["nothing", "untold", "one day", "two days", "two models", "told"],
)
def test_turns_are_counted_by_day_and_model(
    turns: list[TurnState], rows: list[tuple[str, str, int, int, float, int]]
) -> None:
    found = count(SessionState("s", agent="a", model="small", turns=turns), 0)
    assert [(row.day, row.model, row.turns, row.input, row.cost, row.unpriced) for row in found] == rows


@pytest.mark.parametrize(
    ("minutes", "day"),
    [(0, "1970-01-01"), (-60, "1970-01-01"), (-61, "1969-12-31"), (22 * 60, "1970-01-01"), (23 * 60, "1970-01-02")],
)
def test_a_day_is_that_of_who_asks(minutes: int, day: str) -> None:
    (row,) = count(SessionState("s", agent="a", turns=[turn("t1", 0)]), minutes)
    assert row.day == day


@pytest.mark.parametrize(
    ("estimates", "estimated", "unpriced"), [({}, 0.0, 2), ({"t1": 0.5}, 0.5, 1), ({"t1": 0.5, "t2": 0.25}, 0.75, 0)]
)
def test_what_has_no_price_is_unknown_not_nothing(estimates: dict[str, float], estimated: float, unpriced: int) -> None:
    turns = [turn("t1", 0, input=1), turn("t2", 0, input=1)]
    (row,) = count(SessionState("s", agent="a", turns=turns), 0, estimates)
    assert (row.estimated, row.unpriced) == (estimated, unpriced)


async def said(host: Host, by: str) -> Session:
    session = await host.start(by=by, cwd="/")
    await session.wait(await session.send(e.Message("hi"), by=by))
    return session


async def test_rows_are_those_that_one_may_see_and_of_these_days(host: Host) -> None:
    mine, other = await said(host, "token:ada"), await said(host, "token:bob")
    await host.start(by="token:ada", cwd="/")
    index = UsageIndex(host)
    assert {row.session for row in await index.rows(1)} == {mine.id, other.id}, "what said nothing used nothing"
    assert [row.person for row in await index.rows(1, 0, lambda channel: channel == mine.channel)] == ["token:ada"]
    loaded = [row.session for row in await index.rows(1)]
    await mine.wait(await mine.send(e.Message("again"), by="token:ada"))
    assert {row.session: row.turns for row in await index.rows(1)} == {mine.id: 2, other.id: 1}
    assert len(loaded) == 2
