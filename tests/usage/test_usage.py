"""Prices where no agent tells them, and what was used added up."""

import asyncio
import json
import math
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from portico.cli.usage import cost_words
from portico.features.usage import prices
from portico.features.usage.prices import TokenUse, price
from portico.features.usage.rollup import read_keys, roll_up
from portico.features.usage.shapes import UsageCounts, UsageRow
from portico.features.usage.usage_index import UsageIndex, count, priced
from portico.kernel.errors import BadRequest
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.kernel.state import SessionState, TurnState, Usage
from portico.kernel.turn import Turn
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.process import HostProcess, inside


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("gpt-4o", True),
        ("openai/gpt-4o", True),
        ("claude-sonnet-4.5", True),
        ("sonnet", False),
        ("default", False),
        ("auto", False),
        ("", False),
        ("smollm2-135m", False),
    ],
)
def test_a_model_has_a_price_or_none(model: str, known: bool) -> None:
    assert (price(TokenUse(model, 1000, 100, 0)) is not None) is known


def test_the_price_counts_the_cached_as_part_of_what_was_read() -> None:
    whole, cached = price(TokenUse("gpt-4o", 1000, 100, 0)), price(TokenUse("gpt-4o", 1000, 100, 800))
    assert whole == pytest.approx(0.0035)
    assert cached is not None
    assert 0 < cached < 0.0035
    assert price(TokenUse("gpt-4o", 0, 0, 0)) is None  # nothing told is unknown, not 0
    assert price(TokenUse("gpt-4o", 5, 1, 900)) is not None  # an agent that counts them beside


async def test_a_told_cost_stays_an_untold_one_is_estimated_and_the_rest_unknown() -> None:
    used = [Usage(10, 5, 2, 0.5, "gpt-4o"), Usage(1000, 100, 0, 0.0, "gpt-4o"), Usage(7, 7, 0, 0.0, "mystery"), None]
    turns = [
        TurnState(f"t{number}", Message("a"), "token:owner", 1, number, usage=each) for number, each in enumerate(used)
    ]
    rows = {row.model: row for row in await priced(SessionState("s", agent="a", model="small", turns=turns), 0)}
    known = rows["gpt-4o"]
    assert (known.cost, round(known.estimated, 6), known.unpriced) == (0.5, 0.0035, 0)
    assert (rows["mystery"].estimated, rows["mystery"].unpriced, rows["small"].unpriced) == (0.0, 1, 1)


async def test_estimates_name_their_list_its_date_and_what_stands_for_what() -> None:
    found = await prices.price_list({"gpt-5.2-codex", "gpt-4o", "mystery"})
    assert found.name.startswith("genai-prices ")
    assert "2025-01-01" < found.date <= str(date.today()), "a price that is announced for next year is not today's"
    assert found.matched == {"gpt-5.2-codex": "gpt-5.2"}
    assert await prices.price_list(()) == prices.PriceList(found.name), "nothing is loaded for nothing"


async def test_without_the_library_all_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "source", lambda: "")
    assert await prices.dollars([TokenUse("gpt-4o", 1000, 100, 0)]) == [None]
    assert await prices.price_list({"gpt-4o"}) == prices.PriceList()
    assert price(TokenUse("gpt-4o", 1000, 100, 0)) is None


ROWS = [
    UsageRow("2026-11-15", "s1", "", "loop", "m", "token:ada", turns=2, input=10, cost=1.0),
    UsageRow("2026-11-16", "s1", "", "loop", "m", "token:ada", turns=1, input=5, estimated=0.5),
    UsageRow("2026-11-16", "s2", "", "copilot", "n", "token:bob", turns=3, output=7, unpriced=3),
]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("agent", [("loop", 1, 3, 1.5, 0), ("copilot", 1, 3, 0.0, 3)]),
        ("day", [("2026-11-16", 2, 4, 0.5, 3), ("2026-11-15", 1, 2, 1.0, 0)]),
        ("by", [("token:ada", 1, 3, 1.5, 0), ("token:bob", 1, 3, 0.0, 3)]),
    ],
)
def test_rows_are_added_up(by: str, expected: list[tuple[str, int, int, float, int]]) -> None:
    found = roll_up(ROWS, read_keys(by))
    assert [(s.key[by], s.sessions, s.turns, s.cost + s.estimated, s.unpriced) for s in found] == expected


@pytest.mark.parametrize(("text", "words"), [("agnt", "Did you mean 'agent'"), ("agent,nothing", "is not one of day")])
def test_a_wrong_key_is_named(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        read_keys(text)


@pytest.mark.parametrize(
    ("cost", "estimated", "unpriced", "words"),
    [
        (1.2, 0, 0, "$1.20"),
        (1.2, 0.3, 0, "~$1.50"),
        (1.2, 0, 2, "$1.20 and more"),
        (0, 0.001, 0, "~$0.0010"),
        (0, 0, 2, "unknown"),
        (0, 0, 0, "$0.00"),
    ],
)
def test_costs_say_how_sure_they_are(cost: float, estimated: float, unpriced: int, words: str) -> None:
    assert cost_words(SimpleNamespace(cost=cost, estimated=estimated, unpriced=unpriced)) == words


def test_the_command_line_shows_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with HostProcess(home):
        assert inside(home, "send", "--agent", "demo", "hello").returncode == 0
        found = json.loads(inside(home, "usage", "--by", "agent", "--json").stdout)
        assert [(each["key"], each["turns"]) for each in found["sums"]] == [({"agent": "demo"}, 1)]
        assert found["prices"].startswith("genai-prices ")
        shown = inside(home, "usage")
        assert "demo" in shown.stdout
        wrong = inside(home, "usage", "--by", "agnt")
        assert (wrong.returncode, "Did you mean 'agent'" in wrong.stderr) == (64, True)


async def test_a_broken_library_costs_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run used is counted at its end: an error there left the run without one."""
    monkeypatch.setattr(prices, "source", lambda: "genai-prices 9")

    def broken() -> None:
        raise ImportError("no pydantic")

    monkeypatch.setattr(prices, "_library", broken)
    assert await prices.dollars([prices.TokenUse("gpt-4o", 10, 10, 0)]) == [None]


async def test_a_copy_costs_nothing_until_it_runs(open_host: HostOpener, clock: FakeClock) -> None:
    """Continuing in a copy doubled the cost and the tokens, although nothing had run."""

    async def spend(message: Message, turn: Turn) -> None:
        turn.usage(input=100, output=10, cost=0.25, model="small")

    host = await open_host(PlayAgent(spend), clock=clock)
    session = await host.start(by="ada", title="first")
    await session.wait(await session.send(Message("go"), by="ada"))
    index = UsageIndex(host)

    async def used() -> list[tuple[str, int, float]]:
        return sorted((row.session, row.turns, row.cost) for row in await index.rows(7))

    before = await used()
    clock.advance(60)
    copy = await host.fork(session.id, by="ada")
    assert await used() == before == [(session.id, 1, 0.25)]
    await copy.wait(await copy.send(Message("go"), by="ada"))
    assert await used() == sorted([*before, (copy.id, 1, 0.25)])
    assert copy.summary.usage.cost == 0.25


async def counted(index: UsageIndex, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions that are counted from now on, one after another."""
    found: list[str] = []
    count_ = index._count

    async def count_and_note(session: Session) -> None:
        found.append(session.id)
        await count_(session)

    monkeypatch.setattr(index, "_count", count_and_note)
    return found


async def test_only_what_has_changed_is_counted_again_also_after_a_restart(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: with more sessions than the cache held, every request loaded and counted all of them: 4 s of CPU."""

    async def spend(message: Message, turn: Turn) -> None:
        turn.usage(input=100, output=10, cost=0.25, model="small")

    host = await open_host(PlayAgent(spend))
    sessions = [await host.start(by="token:ada") for _ in range(3)]
    for session in sessions:
        await session.wait(await session.send(Message("go"), by="token:ada"))
    index = feature(host, UsageIndex)
    found = await counted(index, monkeypatch)
    rows = await index.rows(7)
    assert sorted(found) == sorted(session.id for session in sessions)
    found.clear()
    assert await index.rows(7, 60) == await index.rows(7, 60)
    day = rows[0].day
    assert (await index.sum(day, 0), found) == (UsageCounts(turns=3, input=300, output=30, cost=0.75), [])
    await sessions[0].wait(await sessions[0].send(Message("go"), by="token:ada"))
    assert (await index.sum(day[:7], 0, "token:ada")).turns == 4
    assert found == [sessions[0].id]
    await host.delete(sessions[1].id, by="test")
    assert (await index.sum(day, 0)).turns == 3
    await host.log.flush()
    host = await open_host(PlayAgent(spend))
    index = feature(host, UsageIndex)
    found = await counted(index, monkeypatch)
    left = {sessions[0].id: 2, sessions[2].id: 1}
    assert {row.session: row.turns for row in await index.rows(7)} == left
    assert found == [], "the totals are stored beside the sessions"


async def test_readers_that_unload_a_session_for_each_other_get_their_rows(open_host: HostOpener) -> None:
    """Bug: `GET /v1/usage` returned 500 once, "is not loaded": another reader had unloaded the session."""

    async def spend(message: Message, turn: Turn) -> None:
        turn.usage(input=100, output=10, cost=0.25, model="small")

    host = await open_host(PlayAgent(spend))
    session = await host.start(by="token:ada")
    await session.wait(await session.send(Message("go"), by="token:ada"))
    session.used_at, session._state = -math.inf, None

    async def unload() -> None:
        await session.load()
        session._state = None

    answers = await asyncio.gather(*(each for _ in range(5) for each in (unload(), UsageIndex(host).rows(7))))
    assert [[row.turns for row in rows] for rows in answers if rows is not None] == [[1]] * 5


@pytest.mark.parametrize("minutes", [-720, -61, -60, 0, 345, 840])
def test_sums_and_rows_agree_in_every_zone(minutes: int) -> None:
    turns = [turn_at(hour * 3_600_000 + 90_000) for hour in range(72)]
    rows = count(SessionState("s", agent="a", model="small", turns=turns), minutes)
    days: dict[str, int] = {}
    for turn in turns:
        moment = datetime.fromtimestamp(turn.started / 1000, UTC) + timedelta(minutes=minutes)
        days[moment.strftime("%Y-%m-%d")] = days.get(moment.strftime("%Y-%m-%d"), 0) + 1
    assert {row.day: row.turns for row in rows} == days


def turn_at(started: int) -> TurnState:
    return TurnState(f"t{started}", Message("go"), "ada", started, 1)
