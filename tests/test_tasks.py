"""No error of a task disappears: those that end others read how they ended."""

import ast
import asyncio
import logging
from pathlib import Path

import pytest

from portico.kernel.errors import BadRequest
from portico.tasks import end_tasks, settle

SOURCE = Path(__file__).parent.parent / "src" / "portico"


def unread(source: str) -> list[int]:
    """The lines with a `gather(..., return_exceptions=True)` whose results are dropped."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Expr):
            continue
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and any(each.arg == "return_exceptions" for each in call.keywords):
            found.append(node.lineno)
    return found


def test_no_gather_drops_errors() -> None:
    """Of 0.2: a bug while a board was sent broke the connection, and the log contained nothing."""
    wrong = {str(path): lines for path in SOURCE.rglob("*.py") if (lines := unread(path.read_text()))}
    assert wrong == {}, "use portico.tasks, or read the results"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("await asyncio.gather(a, return_exceptions=True)", True),
        ("asyncio.gather(a, return_exceptions=True)", True),
        ("found = await asyncio.gather(a, return_exceptions=True)", False),
        ("await asyncio.gather(a)", False),
    ],
)
def test_what_counts_as_dropped(line: str, wrong: bool) -> None:
    assert bool(unread(f"async def f():\n    {line}\n")) is wrong


@pytest.mark.parametrize(
    ("error", "expected", "logged"),
    [
        (ValueError("a bug"), (), True),
        (ValueError("known"), (ValueError,), False),
        (BadRequest("one of ours"), (), False),
        (None, (), False),
        (asyncio.CancelledError(), (), False),
    ],
)
async def test_what_is_logged(
    caplog: pytest.LogCaptureFixture,
    error: BaseException | None,
    expected: tuple[type[Exception], ...],
    logged: bool,
) -> None:
    async def work() -> None:
        if error is not None:
            raise error

    with caplog.at_level(logging.ERROR, "portico.tasks"):
        await settle(asyncio.create_task(work(), name="the task"), expected=expected)
    assert [record.getMessage() for record in caplog.records] == (["the task failed"] if logged else [])


async def test_tasks_end_with_their_cleanup(caplog: pytest.LogCaptureFixture) -> None:
    """A cleanup that fails is logged, too."""

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("in the cleanup")

    task = asyncio.create_task(work(), name="one")
    await asyncio.sleep(0)
    await end_tasks(task)
    assert task.done()
    assert [record.getMessage() for record in caplog.records] == ["one failed"]
