"""The queue that the host holds: seen, edited, reordered and removed over REST."""

from collections.abc import AsyncIterator

import pytest

from tests.doors.standing import Standing, problem


@pytest.fixture
async def busy(shared: Standing) -> AsyncIterator[str]:
    """A session in which a turn runs and two messages wait: the path of its queue."""
    ident = await shared.start()
    for text in ("[[hang]]", "one", "two"):
        await shared.http.post(f"/v1/sessions/{ident}/messages", json={"text": text})
    yield f"/v1/sessions/{ident}/queue"
    await shared.http.post(f"/v1/sessions/{ident}/close")


async def _queue(shared: Standing, path: str) -> list[tuple[str, str]]:
    return [(each["id"], each["message"]["text"]) for each in (await shared.http.get(path)).json()["queue"]]


async def test_waiting_messages_are_seen_edited_reordered_and_removed(shared: Standing, busy: str) -> None:
    (one, _), (two, _) = await _queue(shared, busy)
    await shared.http.patch(f"{busy}/{one}", json={"text": "ONE"})
    assert await _queue(shared, busy) == [(one, "ONE"), (two, "two")]
    await shared.http.post(f"{busy}/order", json={"order": [two, one]})
    assert await _queue(shared, busy) == [(two, "two"), (one, "ONE")]
    assert (await shared.http.delete(f"{busy}/{two}")).json()["queue"][0]["id"] == one
    assert (await shared.http.post(f"{busy}/{one}/steer")).json() == {"steered": False}
    assert (await shared.http.post(f"{busy}/release")).json()["held"] is False


async def test_wrong_orders_are_refused(shared: Standing, busy: str) -> None:
    problem(await shared.http.post(f"{busy}/order", json={}), 400, "bad_request", "order")
    problem(await shared.http.post(f"{busy}/order", json={"order": [1]}), 400, "bad_request", "order[0]")
    problem(await shared.http.post(f"{busy}/order", json={"order": ["nosuch"]}), 404, "not_found")
    assert [text for _, text in await _queue(shared, busy)] == ["one", "two"]


async def test_what_does_not_wait_is_not_found(shared: Standing, busy: str) -> None:
    problem(await shared.http.patch(f"{busy}/nosuch", json={"text": "x"}), 404, "not_found")
    problem(await shared.http.delete(f"{busy}/nosuch"), 404, "not_found")
    problem(await shared.http.post(f"{busy}/nosuch/steer"), 404, "not_found")
    (one, _), _ = await _queue(shared, busy)
    problem(await shared.http.patch(f"{busy}/{one}", json={}), 400, "bad_request", "text")
