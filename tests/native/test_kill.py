"""A host that is killed while it adopts a session: afterwards the session exists completely, or not at all."""

import asyncio
import os
import sys
from pathlib import Path

from tests.native.programs import native_host, write
from tests.native.test_adopt import adopt, found, messages

TURNS = [f"message {number}" for number in range(300)]


async def killed_at(folder: Path, point: str) -> bool | None:
    """Whether the session exists after the kill; None: the adoption ended before that point. Adopting it (again) gives
    the whole session either way."""
    write(folder, "n1", *TURNS)
    env = {**os.environ, "PORTICO_KILL_AT": point}
    killed = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.native.test_kill", str(folder), env=env)
    if (code := await killed.wait()) == 0:
        return None
    assert code == -9
    async with native_host(folder) as host:
        known = [(each.turns, each.vendor) for each in host.list()]
        assert known in ([], [(300, "n1")])
        assert await found(host) == ([] if known else ["n1"])
        assert messages(await adopt(host, "n1")) == TURNS
        assert len(host.list()) == 1
        return bool(known)


async def test_a_kill_during_an_adoption_leaves_all_or_nothing(tmp_path: Path) -> None:
    """At every commit from the start of the host to its end; the first one is the start of the host."""
    found: dict[str, bool | None] = {}
    for number in range(2, 10):
        for point in (f"before-append:{number}", f"before-commit:{number}", f"after-commit:{number}"):
            folder = tmp_path / point.replace(":", "-")
            folder.mkdir()
            found[point] = await killed_at(folder, point)
        if found[f"before-append:{number}"] is None:
            break
    assert [found[f"{point}:2"] for point in ("before-append", "before-commit", "after-commit")] == [False, False, True]
    later = [exists for point, exists in found.items() if not point.endswith(":2")]
    assert set(later) == {True, None}, "the session exists from its first commit on, and every later one was tried"


async def main(folder: Path) -> None:
    async with native_host(folder) as host:
        await adopt(host, "n1")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
