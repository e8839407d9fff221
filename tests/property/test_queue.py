"""Any sequence of queue commands, against a plain list."""

import contextlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from portico.agents.agent import Message
from portico.kernel.errors import NotFound
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.commands import edit, reorder
from tests.host.plays import hang
from tests.property.scene import quick, run

names = st.integers(0, 8).map(lambda number: f"q{number}")
commands = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "edit", "remove", "steer", "steer_now"]), names),
        st.tuples(st.just("reorder"), st.lists(names, max_size=5)),
        st.tuples(st.sampled_from(["next", "restart"]), st.just("")),
    ),
    max_size=25,
)


def reordered(model: list[str], order: list[str]) -> list[str]:
    named = [name for name in dict.fromkeys(order) if name in model]
    return named + [name for name in model if name not in named]


@quick
@given(commands)
def test_the_queue_is_a_list(commands: list[tuple[str, str | list[str]]]) -> None:
    async def story(folder: Path) -> None:
        opener = HostOpener(folder)
        session = await (await opener(PlayAgent(hang))).start(by="test", cwd="/")
        await session.send(Message("first"), by="test")
        model: list[str] = []
        steers: set[str] = set()
        texts: dict[str, str] = {}
        for number, (command, target) in enumerate(commands):
            queue, name = session.queue, str(target)
            running = session.state.active is not None
            if command == "reorder":
                await reorder(session, list(target), by="test")
                model = reordered(model, list(target))
            elif command in ("add", "steer") and name not in model:
                texts[name] = f"text {number}"
                if command == "add":
                    await queue.add(Message(texts[name]), by="test", id=name)
                    model.append(name)
                else:
                    assert not await queue.steer(Message(texts[name]), by="test", id=name)
                    steers.add(name)
                    model = [name, *model] if running else model_after_start([name, *model], steers)
            elif command in ("edit", "remove", "steer_now"):
                with contextlib.suppress(NotFound):
                    if command == "edit":
                        await edit(session, name, Message(f"edited {number}"), by="test")
                        texts[name] = f"edited {number}"
                    elif command == "remove":
                        await queue.remove(name, by="test")
                        model.remove(name)
                    else:
                        await queue.steer_now(name, by="test")
                        model.remove(name)
                        model = [name, *model] if running else model_after_start([name, *model], steers)
                    continue
                assert name not in model
            elif command == "next" and running:
                await session.cancel(by="test")
                model = model_after_start(model, steers)
            elif command == "restart":
                session = await (await opener(PlayAgent(hang))).get(session.id)
                assert session.state.active is None
                assert session.state.queue_held is bool(model)
            assert [pending.id for pending in session.state.queue] == model
            assert [pending.message.text for pending in session.state.queue] == [texts[name] for name in model]
        await opener.close()

    def model_after_start(model: list[str], steers: set[str]) -> list[str]:
        """The next one is the first that was meant for steering, else the first."""
        following = next((name for name in model if name in steers), model[0] if model else None)
        steers.discard(str(following))
        return [name for name in model if name != following]

    run(story)
