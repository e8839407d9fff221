"""Notices: made once, delivered in order however long the receiver is away, and only when somebody is needed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook as Verifier

from portico.addresses import is_public
from portico.agents.agent import Message
from portico.features.automations import events as ae
from portico.features.automations.events import AutomationPlan
from portico.features.budgets.budgets import Budgets
from portico.features.jobs import events as je
from portico.features.notices import notices as room
from portico.features.notices.commands import NoticeNamed, RedeliverNotice
from portico.features.notices.commands import TestNotice as NoticeTest
from portico.features.notices.notice import WAITS, Delivery, Notice, NotSent, after_quiet, due, wants
from portico.features.notices.notices import PROGRAMS_AT_ONCE, Notices
from portico.features.notices.send import Sender, secret_of, signature
from portico.features.notices.targets import targets_of
from portico.kernel import commands as c
from portico.kernel.errors import AgentError, BadRequest, NotFound
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.turn import Turn
from portico.server.settings import NoticeSettings, NoticeTarget, Webhook
from portico.server.settings_load import load
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.notices.receiver import Receiver, receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ME = c.Caller("t", "t", frozenset(c.SCOPES))


def settings(*webhooks: Any, **more: Any) -> NoticeSettings:
    hooks = [{"name": "phone", "secret": SECRET, **each} for each in webhooks]
    return msgspec.convert({"webhooks": hooks, "allow_private": ["127.0.0.1"], **more}, NoticeSettings)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no receiver that hangs."""
    monkeypatch.setattr("portico.features.notices.send.WEBHOOK_SECONDS", 60.0)


@pytest.fixture
async def at() -> AsyncIterator[Receiver]:
    async with receiver() as found:
        yield found


async def play(message: Message, turn: Turn) -> None:
    if message.text == "approve":
        call = turn.tool("shell", '{"command": "make"}', kind="execute")
        await call.approve("shell", command="make")
        await call.end()
    elif message.text.startswith("spend"):
        turn.usage(input=int(message.text.partition(" ")[2]))
        await turn.session.host.spending.admit(turn)
    elif message.text == "ask":
        await turn.ask("Which one?")
    elif message.text == "fail":
        raise AgentError("It broke.")


class Desk:
    """A host with notices, whose log is the same each time it is opened."""

    def __init__(self, opener: HostOpener, clock: FakeClock) -> None:
        self._opener, self.clock = opener, clock
        self._stored = asyncio.Condition()

    async def open(self, given: NoticeSettings) -> Notices:
        self.host: Host = await self._opener(PlayAgent(play), clock=self.clock)
        self.notices = feature(self.host, Notices)
        self._store = self.notices._store
        self.notices._store = self._store_and_tell  # type: ignore[method-assign]
        self.notices.configure(given, "https://box.example/")
        await self.notices.start()
        return self.notices

    async def _store_and_tell(self, *deliveries: Delivery, cursor: int = 0) -> None:
        await self._store(*deliveries, cursor=cursor)
        async with self._stored:
            self._stored.notify_all()

    async def session(self, folder: Path) -> Session:
        return await self.host.start(by="test", agent="play", cwd=str(folder))

    async def turn(self, session: Session, text: str = "go") -> None:
        await session.wait(await session.send(Message(text), by="token:ada"))

    async def until(self, *states: str) -> list[Delivery]:
        """When the deliveries are in these states."""
        async with asyncio.timeout(60), self._stored:
            await self._stored.wait_for(lambda: sorted(each.state for each in self._all()) == sorted(states))
        return self._all()

    async def attempts(self, count: int) -> None:
        """When so many were made and written down."""
        async with asyncio.timeout(60), self._stored:
            await self._stored.wait_for(lambda: sum(len(each.attempts) for each in self._all()) >= count)

    def _all(self) -> list[Delivery]:
        return list(self.notices.deliveries.values())


@pytest.fixture
def desk(open_host: HostOpener, clock: FakeClock) -> Desk:
    return Desk(open_host, clock)


# -- webhooks --------------------------------------------------------------------------------------------------


async def test_a_receiver_that_fails_for_a_while_gets_everything_once_and_in_order(
    desk: Desk, at: Receiver, tmp_path: Path
) -> None:
    """Also over a restart in between."""
    at.status = 503
    given = settings({"url": at.url})
    await desk.open(given)
    session = await desk.session(tmp_path)
    await desk.turn(session)
    await desk.turn(session)
    await desk.attempts(1)
    for number, seconds in enumerate(WAITS[:3], 2):
        desk.clock.advance(seconds)
        await desk.attempts(number)
    await desk.until("waiting", "waiting")
    assert at.requests == 4, "the second one waits for the first"
    await desk.open(given)
    at.status = 200
    await desk.until("waiting", "waiting")
    desk.clock.advance(WAITS[3])
    await desk.until("delivered", "delivered")
    assert [each["data"]["id"] for each in at.got] == list(desk.notices.deliveries)
    assert len(at.got) == 2
    await desk.open(given)
    await desk.until("delivered", "delivered")
    assert len(at.got) == 2


@pytest.mark.parametrize("status", [200, 503], ids=["delivered", "waiting"])
async def test_a_deleted_session_is_quoted_in_no_notice(desk: Desk, at: Receiver, tmp_path: Path, status: int) -> None:
    """Bug: the title of a deleted session stayed in the list of notices for a week."""
    at.status = status
    await desk.open(settings({"url": at.url}))
    gone, stays = await desk.session(tmp_path), await desk.session(tmp_path)
    for session in (gone, stays):
        await desk.turn(session)
    await desk.attempts(2)
    await desk.host.delete(gone.id, by="test")
    assert {each.notice.session for each in desk.notices.deliveries.values()} == {stays.id}
    await desk.open(settings({"url": at.url}))
    assert {each.notice.session for each in desk.notices.deliveries.values()} == {stays.id}


async def test_the_call_is_one_of_standard_webhooks(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    await desk.open(settings({"url": at.url}))
    desk.clock.set_ahead = time.time() - desk.clock.time()  # the verifier has a clock of its own
    session = await desk.session(tmp_path)
    await desk.turn(session)
    (delivery,) = await desk.until("delivered")
    call = at.got[0]
    assert Verifier(SECRET).verify(call["body"], call["headers"]) == json.loads(call["body"])
    assert call["headers"]["host"] == at.url.split("/")[2]
    assert (call["type"], call["data"]) == (
        "turn_done",
        {
            "id": delivery.id,
            "text": "The agent is done.",
            "session": session.id,
            "title": "go",
            "agent": "play",
            "folder": str(tmp_path),
            "link": f"https://box.example/app/s/{session.id}",
        },
    )


def test_the_secret_comes_from_the_settings_a_variable_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    monkeypatch.setenv("NOTICE_SECRET", SECRET)
    where: Any
    for where in ({"secret": SECRET}, {"secret_env": "NOTICE_SECRET"}, {"secret_file": str(tmp_path / "secret")}):
        assert secret_of(Webhook(name="x", url="https://x", **where)) == SECRET
    for where in ({"secret_env": "NO_SUCH"}, {"secret_file": str(tmp_path / "none")}):
        with pytest.raises(NotSent):
            secret_of(Webhook(name="x", url="https://x", **where))


def test_a_second_secret_signs_too() -> None:
    other = "whsec_" + "QUFB" * 8
    found = signature(f"{SECRET} {other}", "id", 1, b"{}").split()
    assert found == [signature(SECRET, "id", 1, b"{}"), signature(other, "id", 1, b"{}")]


async def test_after_a_day_it_is_given_up_and_can_be_sent_again(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    at.status = 500
    notices = await desk.open(settings({"url": at.url}))
    await desk.turn(await desk.session(tmp_path))
    await desk.attempts(1)
    for number, seconds in enumerate(WAITS, 2):
        desk.clock.advance(seconds)
        await desk.attempts(number)
    (delivery,) = await desk.until("failed")
    assert 86_000 < sum(WAITS) < 100_000
    assert {each.error for each in delivery.attempts} == {"The receiver answered 500."}
    at.status = 200
    assert await desk.host.do(RedeliverNotice(notice=delivery.id), ME) == NoticeNamed(delivery.id)
    await desk.until("delivered")
    with pytest.raises(NotFound):
        await desk.host.do(RedeliverNotice(notice="notice-0-x"), ME)
    named = await desk.host.do(NoticeTest(target="phone"), ME)
    await desk.until("delivered", "delivered")
    assert (at.got[-1]["type"], at.got[-1]["data"]["id"]) == ("test", named.notice)
    assert notices.deliveries[named.notice].state == "delivered"


async def test_a_redirect_is_not_followed(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    at.status, at.head = 302, "Location: /elsewhere\r\n"
    await desk.open(settings({"url": at.url}))
    await desk.turn(await desk.session(tmp_path))
    await desk.attempts(1)
    assert at.paths == ["/in"]
    (delivery,) = desk.notices.deliveries.values()
    assert delivery.attempts[0].error == "The receiver answered 302; redirects are not followed."


async def test_targets_that_hang_slow_nobody(
    desk: Desk, at: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than may be called at once; one place is left for those that answer."""
    monkeypatch.setattr(room, "AT_ONCE", 1)
    monkeypatch.setattr(room, "AT_ONCE_FAILING", 3)
    async with receiver() as hanging:
        hanging.hang = True
        names = [{"name": f"bad-{number}", "url": hanging.url} for number in range(20)]
        await desk.open(settings({"url": at.url}, *names))
        desk.notices._failing |= {each["name"] for each in names}
        session = await desk.session(tmp_path)
        await desk.turn(session)
        await at.until(lambda: len(at.got) == 1)
        await desk.turn(session)
        await at.until(lambda: len(at.got) == 2)
        assert hanging.got == []
        await desk.host.close()


# -- addresses -------------------------------------------------------------------------------------------------

PRIVATE = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://127.1/",
    "http://0/",
    "http://localhost/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest",
    "http://100.64.0.1/",
    "http://192.88.99.1/",
    "http://224.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::808:808]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://[fec0::1]/",
    "http://[feff:ffff::1]/",
    "http://[3fff::1]/",
    "http://[3fff:fff::1]/",
]


@pytest.mark.parametrize("url", PRIVATE)
async def test_a_private_address_is_refused_in_every_form(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    monkeypatch.setattr(sender, "_http", lambda: pytest.fail("it was called"))
    given = settings({"url": url}, allow_private=[])
    delivery = Delivery("n", "phone", Notice("test", "", 0))
    with pytest.raises(NotSent, match="private address"):
        await sender.send(delivery, given.webhooks[0], given, 0)
    await sender.close()


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700::1111", True), ("::ffff:8.8.8.8", True), ("64:ff9b::808:808", True)],
)
def test_public_addresses_pass(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("webhook", "words"),
    [
        ({"url": "https://example.org@127.0.0.1/"}, "before '@'"),
        ({"url": "https://u:p@example.org/"}, "before '@'"),
        ({"url": "https://0177.0.0.1/"}, "no address"),
        ({"url": "ftp://example.org/"}, "such as"),
        ({"url": "example.org"}, "such as"),
        ({"url": "https:///x"}, "such as"),
        ({"url": "http://example.org/"}, "needs https"),
        ({"url": "https://x.org", "secret": "short"}, "base64"),
        ({"url": "https://x.org", "secret": ""}, "exactly one"),
        ({"url": "https://x.org", "secret_env": "X"}, "exactly one"),
        ({"url": "https://x.org", "quiet": "22-7"}, "22:00-07:00"),
        ({"url": "https://x.org", "quiet": "07:00-07:00"}, "22:00-07:00"),
        ({"url": "https://x.org", "zone": "Mars/X"}, "time zone"),
        ({"url": "https://x.org", "name": "A b"}, "lower case"),
    ],
)
def test_what_is_wrong_in_a_webhook_is_said(webhook: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        targets_of(settings(webhook))
    assert refused.value.field == "notices.webhooks"
    assert SECRET not in refused.value.message


def test_a_wrong_table_says_which_key_and_keeps_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'[[notices.webhooks]]\nname = "x"\nurl = "https://x"\nsecret = "{SECRET}"\nkind = "approval"\n')
    with pytest.raises(BadRequest, match="unknown field `kind`") as refused:
        load(file, {})
    assert SECRET not in refused.value.message


# -- who and when ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ({}, True),
        ({"kinds": ["approval", "turn_done"]}, True),
        ({"kinds": ["approval"]}, False),
        ({"folders": ["/src/a"]}, True),
        ({"folders": ["/src"]}, True),
        ({"folders": ["/src/ab", "/x"]}, False),
    ],
)
def test_a_target_chooses_kinds_and_folders(target: dict[str, Any], told: bool) -> None:
    notice = Notice("turn_done", "", 0, folder="/src/a")
    assert wants(msgspec.convert({"name": "x", **target}, NoticeTarget), notice) is told


DAY = 1_700_006_400_000
"""00:00 UTC."""
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("quiet", "zone", "hour", "until"),
    [
        ("", "UTC", 3, 3),
        ("22:00-07:00", "UTC", 3, 7),
        ("22:00-07:00", "UTC", 7, 7),
        ("22:00-07:00", "UTC", 23, 31),
        ("22:00-07:00", "Europe/Berlin", 6, 6),
        ("22:00-07:00", "Europe/Berlin", 21, 30),
        ("12:00-13:00", "UTC", 12.5, 13),
        ("12:00-13:00", "UTC", 11, 11),
    ],
)
def test_in_quiet_hours_it_waits_for_their_end(quiet: str, zone: str, hour: float, until: float) -> None:
    target = NoticeTarget(name="x", quiet=quiet, zone=zone)
    assert after_quiet(target, int(DAY + hour * HOUR)) == int(DAY + until * HOUR)


@pytest.mark.parametrize(
    ("tries", "ahead", "put_off"),
    [(0, 0, 0), (0, 60, 60), (0, 61, 0), (1, 5, 5), (1, 86_400, 0), (10, 37_200, 37_200), (10, 40_000, 0), (3, -5, -5)],
)
def test_a_clock_that_is_set_back_holds_no_notice_up(tries: int, ahead: int, put_off: int) -> None:
    """One that was made while the clock stood a year ahead waited for that year."""
    delivery = Delivery("n", "x", Notice("test", "", 0), next=DAY + ahead * 1000, tries=tries)
    assert due(delivery, DAY) == DAY + put_off * 1000


@pytest.mark.parametrize(("text", "kind"), [("approve", "approval"), ("ask", "question")])
async def test_what_was_answered_meanwhile_is_not_sent(
    desk: Desk, at: Receiver, tmp_path: Path, text: str, kind: str
) -> None:
    at.status = 503
    await desk.open(settings({"url": at.url, "kinds": [kind]}))
    session = await desk.session(tmp_path)
    turn = await session.send(Message(text), by="token:ada")
    await desk.attempts(1)
    (delivery,) = await desk.until("waiting")
    assert (delivery.notice.kind, delivery.notice.session) == (kind, session.id)
    if kind == "approval":
        await session.approvals.answer(delivery.notice.ask, allow=True, by="token:ada")
    else:
        await session.questions.answer(delivery.notice.ask, "decline", {}, by="token:ada")
    await session.wait(turn)
    await desk.until("unneeded")
    desk.clock.advance(WAITS[0])
    assert at.requests == 1


async def test_a_question_in_a_session_that_is_open_waits_a_minute(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    """Whoever has it open sees it; a page may stand open with nobody before it. The end of a turn is not told."""
    await desk.open(settings({"url": at.url}))
    session = await desk.session(tmp_path)
    with desk.notices.viewing([session.channel]):
        await desk.turn(session)
        await desk.turn(session, "fail")
        await session.send(Message("approve"), by="token:ada")
        (delivery,) = await desk.until("waiting")
        assert (delivery.notice.kind, at.requests) == ("approval", 0)
        desk.clock.advance(60)
        await desk.until("delivered")
    assert desk.notices.viewers == {}


async def test_four_fifths_of_a_budget_are_told_once(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    await desk.open(settings({"url": at.url, "kinds": ["budget"]}))
    feature(desk.host, Budgets).rules = {"session": Budget(tokens=100)}
    session = await desk.session(tmp_path)
    await session.send(Message("spend 85"), by="token:ada")
    (delivery,) = await desk.until("delivered")
    assert delivery.notice.text == "85% of the budget of this session is spent: 85 of 100 tokens."
    assert delivery.notice.link == f"https://box.example/app/s/{session.id}"
    await session.send(Message("spend 5"), by="token:ada")
    await session.send(Message("spend 20"), by="token:ada")
    told = await desk.until("delivered", "delivered")
    assert "is spent: 110 of 100 tokens. The agent works on meanwhile: it waits only before" in told[1].notice.text
    assert told[1].notice.link == f"https://box.example/app/inbox/{told[1].notice.ask}"


async def test_what_was_not_told_is_not_told_after_a_restart(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    given = settings({"url": at.url})
    await desk.open(given)
    session = await desk.session(tmp_path)
    with desk.notices.viewing([session.channel]):
        await desk.turn(session)
        await session.rename("Mine", by="token:ada")
    await desk.open(given)
    await desk.turn(await desk.host.get(session.id), "fail")
    (delivery,) = await desk.until("delivered")
    assert (delivery.notice.kind, delivery.notice.text) == ("turn_failed", "It broke.")


async def test_what_a_crash_left_untold_is_told_at_the_next_start(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    """The event is durable, and the host ends before the notice is made."""
    given = settings({"url": at.url})
    await desk.open(given)
    session = await desk.session(tmp_path)
    await desk.turn(session)
    await desk.until("delivered")
    await desk.notices.close()
    await desk.turn(session, "fail")
    await desk.open(given)
    await desk.until("delivered", "delivered")
    assert [each["type"] for each in at.got] == ["turn_done", "turn_failed"]


async def test_what_happened_before_there_was_a_target_is_not_told(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    await desk.open(NoticeSettings())
    session = await desk.session(tmp_path)
    await desk.turn(session, "fail")
    await desk.open(settings({"url": at.url}))
    await desk.turn(await desk.host.get(session.id))
    (delivery,) = await desk.until("delivered")
    assert delivery.notice.kind == "turn_done"


async def test_a_job_tells_once_and_its_turns_do_not(desk: Desk, at: Receiver, tmp_path: Path) -> None:
    await desk.open(settings({"url": at.url}))
    started = je.JobStarted(job="job-1", name="build", entry={}, cwd=str(tmp_path), by="token:ada")
    await desk.host.log.append("job/job-1", started, je.JobEnded(job="job-1", outcome="failed", by="host", error="No."))
    (delivery,) = await desk.until("delivered")
    assert delivery.notice == Notice(
        "job_failed",
        "The job 'build' failed. No.",
        delivery.notice.time,
        title="build",
        folder=str(tmp_path),
        job="job-1",
        link="https://box.example/app/j/job-1",
    )
    run = ae.RunClaimed(run="run-1", automation="a-1", name="nightly", cause="schedule", due=0, by="automation:a-1")
    its_job = msgspec.structs.replace(started, job="job-2", by="run:run-1")
    await desk.host.log.append_all(
        ("run/run-1", run),
        ("job/job-2", its_job),
        ("job/job-2", je.JobEnded(job="job-2", outcome="succeeded", by="host")),
        ("run/run-1", ae.RunEnded(outcome="succeeded")),
    )
    found = await desk.until("delivered", "delivered")
    assert (found[1].notice.kind, found[1].notice.automation) == ("automation_done", "nightly")


async def test_an_automation_that_has_failed_too_often_tells_that_it_stopped(desk: Desk, at: Receiver) -> None:
    """The last failure alone said nothing of it, and nothing ran any more."""
    await desk.open(settings({"url": at.url}))
    created = ae.AutomationCreated("a-1", "nightly", AutomationPlan(), "token:ada", [])
    pauses = [
        ae.AutomationPaused(by="token:ada", reason="Paused by token:ada."),
        ae.AutomationPaused(by="host", reason="It has run 3 times (stop_after_runs)."),
        ae.AutomationPaused(by="host", reason="5 runs failed in a row (stop_after_failures).", failed=True),
    ]
    await desk.host.log.append("automation/a-1", created, *pauses)
    (delivery,) = await desk.until("delivered")
    assert (delivery.notice.kind, delivery.notice.text, delivery.notice.link) == (
        "automation_failed",
        "The automation 'nightly' has paused itself: 5 runs failed in a row (stop_after_failures).",
        "https://box.example/app/automations/a-1",
    )


# -- commands --------------------------------------------------------------------------------------------------


async def test_a_program_gets_the_notice_on_its_input(desk: Desk, tmp_path: Path) -> None:
    target = tmp_path / "got.json"
    command = {"name": "bell", "command": ["/bin/sh", "-c", f"cat > {target}"], "kinds": ["turn_failed"]}
    await desk.open(settings(commands=[command]))
    await desk.turn(await desk.session(tmp_path), "fail")
    await desk.until("delivered")
    got = json.loads(target.read_text())
    assert (got["type"], got["data"]["text"]) == ("turn_failed", "It broke.")


async def test_few_programs_run_at_once(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six hundred at once, as for webhooks, are a fork bomb."""
    full, running, most = asyncio.Event(), 0, 0

    async def command(*_: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == PROGRAMS_AT_ONCE:
            full.set()
        await full.wait()
        running -= 1

    monkeypatch.setattr(Sender, "_command", command)
    await desk.open(settings(commands=[{"name": "bell", "command": ["x"]}]))
    for _ in range(PROGRAMS_AT_ONCE + 4):
        await desk.turn(await desk.session(tmp_path))
    await desk.until(*["delivered"] * (PROGRAMS_AT_ONCE + 4))
    assert most == PROGRAMS_AT_ONCE


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/bin/sh", "-c", "echo away; exit 3"], "It ended with 3: away"),
        (["/no/such/program"], "does not start"),
        (["/bin/sleep", "60"], "did not end within"),
    ],
)
async def test_a_program_that_fails_is_tried_again(
    desk: Desk, tmp_path: Path, command: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in command[0]:
        monkeypatch.setattr("portico.features.notices.send.COMMAND_SECONDS", 0.2)
    await desk.open(settings(commands=[{"name": "bell", "command": command}]))
    await desk.turn(await desk.session(tmp_path))
    await desk.attempts(1)
    (delivery,) = await desk.until("waiting")
    assert words in delivery.attempts[0].error
