"""Guards of features: each runs before the commands that it applies to, and before no other."""

from typing import Any

import pytest

from portico.kernel import commands as c
from portico.kernel.errors import Forbidden
from portico.testing.fixtures import HostOpener

ADA = c.Caller.inside("ada")


async def test_a_guard_runs_before_the_commands_that_it_applies_to(open_host: HostOpener) -> None:
    host = await open_host()
    session = await host.start(by="ada", cwd="/")
    seen: list[type[c.Command]] = []
    host.commands.guard(lambda command, caller: seen.append(type(command)), lambda kind: kind is c.RenameSession)
    await host.do(c.RenameSession(session=session.id, title="one"), ADA)
    await host.do(c.ArchiveSession(session=session.id, archived=True), ADA)
    assert seen == [c.RenameSession]


@pytest.mark.parametrize("before", [False, True], ids=["of a new command", "of a command that ran before"])
async def test_a_guard_that_refuses_changes_nothing(open_host: HostOpener, before: bool) -> None:
    """The guards of a type are looked up once: one that is added later still counts."""
    host = await open_host()
    session = await host.start(by="ada", cwd="/")
    if before:
        await host.do(c.RenameSession(session=session.id, title="one"), ADA)

    def refuse(command: Any, caller: c.Caller) -> None:
        raise Forbidden("Not today.")

    host.commands.guard(refuse)
    position = session.state.pos
    with pytest.raises(Forbidden, match="Not today"):
        await host.do(c.RenameSession(session=session.id, title="two"), ADA)
    assert (session.state.pos, session.state.title) == (position, "one" if before else "")


async def test_guards_run_in_the_order_of_their_registration(open_host: HostOpener) -> None:
    host = await open_host()
    session = await host.start(by="ada", cwd="/")
    seen: list[str] = []
    host.commands.guard(lambda command, caller: seen.append("first"))
    host.commands.guard(lambda command, caller: seen.append("second"))
    await host.do(c.RenameSession(session=session.id, title="one"), ADA)
    assert seen == ["first", "second"]
