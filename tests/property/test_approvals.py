"""Any crowd of answers, in any order, with a time-out somewhere: one decision, and it is the first valid one."""

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from portico.agents.agent import Message
from portico.kernel import events as e
from portico.kernel.errors import AlreadyAnswered, BadRequest
from portico.kernel.state import CallPart, TextPart
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import allowed
from tests.property.scene import quick, run

TIMEOUT = 120.0

answers = st.one_of(
    st.tuples(st.just("allow"), st.booleans()),
    st.tuples(st.just("option"), st.sampled_from(["allow-once", "allow-session", "deny", "nonsense"])),
    st.tuples(st.just("time"), st.sampled_from([1.0, 60.0, TIMEOUT])),
)


@quick
@given(st.lists(answers, max_size=6), st.booleans())
def test_one_decision(crowd: list[tuple[str, object]], at_once: bool) -> None:
    async def story(folder: Path) -> None:
        opener, clock = HostOpener(folder), FakeClock()
        host = await opener(PlayAgent(allowed), clock=clock)
        host.approval_timeout = TIMEOUT
        session = await host.start(by="test", cwd="/")
        turn_id = await session.send(Message("go"), by="test")
        state = await session.wait_until(lambda state: state.status == "waiting")
        assert state.active is not None
        call = state.active.parts[0]
        assert isinstance(call, CallPart)
        assert call.approval is not None
        ident = call.approval.id

        async def answer(number: int, kind: str, value: object) -> str | None:
            if kind == "time":
                assert isinstance(value, float)
                clock.advance(value)
                for _ in range(3):
                    await asyncio.sleep(0.0005)
                return None
            try:
                await session.approvals.answer(ident, by=f"client:{number}", **{kind: value})  # type: ignore[arg-type]
            except (AlreadyAnswered, BadRequest):
                return None
            return f"client:{number}"

        tries = [answer(number, kind, value) for number, (kind, value) in enumerate(crowd)]
        winners = await asyncio.gather(*tries) if at_once else [await each for each in tries]
        clock.advance(TIMEOUT)
        turn = await session.wait(turn_id)

        events = [r.event for r in await host.log.read(session.channel)]
        [written] = [event for event in events if isinstance(event, e.ApprovalAnswered)]
        told = [winner for winner in winners if winner is not None]
        assert told == ([] if written.by == "timeout" else [written.by]), "exactly the winner is told so"
        part = turn.parts[-1]
        assert isinstance(part, TextPart)
        assert part.text.startswith(f"{'yes' if written.allowed else 'no'}: {written.by}")
        assert bool(host.grants) is (written.option == "allow-session")
        await opener.close()

    run(story)
