"""A host that is killed while it adopts a session: afterwards the session exists completely, or not at all."""

import asyncio
import os
import sys
from pathlib import Path

from tests.native.programs import native_host, write
from tests.native.test_adopt import adopt, found, messages

TURNS = [f"message {number}" for number in range(300)]


async def killed_at(folder: Path, point: str) -> bool:
    """Whether the session exists after the kill. Adopting it (again) gives the whole session either way."""
    write(folder, "n1", *TURNS)
    env = {**os.environ, "PORTICO_KILL_AT": point}
    killed = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.native.test_kill", str(folder), env=env)
    assert await killed.wait() == -9
    async with native_host(folder) as host:
        known = [(each.turns, each.vendor) for each in host.list()]
        assert known in ([], [(300, "n1")])
        assert await found(host) == ([] if known else ["n1"])
        assert messages(await adopt(host, "n1")) == TURNS
        assert len(host.list()) == 1
        return bool(known)


async def test_a_kill_during_an_adoption_leaves_all_or_nothing(tmp_path: Path) -> None:
    points = ["before-append:2", "before-commit:2", "after-commit:2"]  # the first commit is the start of the host
    folders = [tmp_path / str(number) for number in range(len(points))]
    for folder in folders:
        folder.mkdir()
    assert [await killed_at(*each) for each in zip(folders, points, strict=True)] == [False, False, True]


async def main(folder: Path) -> None:
    async with native_host(folder) as host:
        await adopt(host, "n1")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
