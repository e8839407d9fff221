"""What was answered today, as the inbox lists it."""

import asyncio

import pytest

from portico.features.board.activity import waiting_of
from portico.features.board.answers import Answers
from portico.features.people.view import View
from portico.kernel.commands import SCOPES, Caller
from portico.kernel.events import Message
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import allowed


@pytest.mark.parametrize("allow", [True, False])
async def test_each_answer_is_listed_once_however_many_ask_at_the_same_time(open_host: HostOpener, allow: bool) -> None:
    """Reported: four pages that asked at once read the same records, and each answer stood there up to four times."""
    host = await open_host(PlayAgent(allowed))
    session = await host.start(by="test", cwd="/")
    for _ in range(2):
        await session.send(Message("go"), by="test")
        state = await session.wait_until(lambda state: state.status == "waiting")
        (waiting,) = waiting_of(state)
        await session.approvals.answer(waiting.id, allow=allow, by="token:ada")
        await session.wait_until(lambda state: state.status == "idle")
    answers, view = Answers(host), View(host, Caller("token-1", "ada", frozenset(SCOPES)))
    for found in await asyncio.gather(*(answers.since(0, view) for _ in range(4))):
        assert [(each.text, each.by, each.allowed) for each in found.answers] == [
            ("Wants to run make", "token:ada", allow)
        ] * 2
