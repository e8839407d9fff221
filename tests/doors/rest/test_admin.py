"""What was used, tokens and settings, over REST."""

import pytest

from portico import limits
from portico.doors.rest.admin import _hidden
from portico.features.usage.usage_index import count
from portico.kernel.events import Message
from portico.kernel.state import SessionState, TurnState, Usage
from tests.doors.standing import Standing, problem


async def test_usage_by_day_and_session(shared: Standing) -> None:
    session = await shared.start(agent="demo", title="Counted")
    await shared.say(session, "hello")
    await shared.say(session, "and again")

    async def look() -> list[dict[str, object]]:
        rows = (await shared.http.get("/v1/usage", params={"days": "1"})).json()["rows"]
        return [row for row in rows if row["session"] == session]

    (row,) = await look()
    assert (row["title"], row["agent"], row["turns"], row["unpriced"]) == ("Counted", "demo", 2, 2)
    await shared.say(session, "once more")
    (row,) = await look()
    assert row["turns"] == 3
    problem(await shared.http.get("/v1/usage", params={"days": str(limits.USAGE_DAYS + 1)}), 400, "bad_request", "days")


def test_a_day_begins_where_the_asker_lives_and_a_cost_nobody_told_is_unknown() -> None:
    late = 1_700_000_000_000 - 1_700_000_000_000 % 86_400_000 + 23 * 3_600_000
    turns = [
        TurnState("t1", Message("a"), "token:owner", late, 1, usage=Usage(10, 5, 2, 0.5, "large")),
        TurnState("t2", Message("b"), "token:owner", late, 2, usage=Usage(1, 1)),
    ]
    state = SessionState("s", agent="a", model="small", turns=turns)
    utc = {row.model: row for row in count(state, 0)}
    assert (utc["large"].cost, utc["large"].unpriced, utc["small"].unpriced) == (0.5, 0, 1)
    berlin = count(state, 120)
    assert berlin[0].day > utc["large"].day


async def test_tokens_are_made_shown_once_and_ended(shared: Standing) -> None:
    made = await shared.http.post("/v1/tokens", json={"name": "phone", "scopes": ["read", "approve"]})
    assert made.status_code == 201
    token = made.json()["token"]
    async with shared.client(token) as phone:
        assert (await phone.get("/v1")).json()["you"] == "phone"
        assert (await phone.get("/v1/tokens")).status_code == 403
    listed = (await shared.http.get("/v1/tokens")).json()["tokens"]
    assert [(each["name"], each["scopes"]) for each in listed] == [("phone", ["read", "approve"])]
    assert token not in str(listed)
    assert [each["expires"] for each in listed] == [0]
    day = (await shared.http.post("/v1/tokens", json={"name": "day", "days": 1})).json()
    assert day["expires"] == day["created"] + 86_400_000
    await shared.http.delete("/v1/tokens/day")
    assert (await shared.http.delete("/v1/tokens/phone")).status_code == 204
    async with shared.client(token) as phone:
        assert (await phone.get("/v1")).status_code == 401
    problem(await shared.http.delete("/v1/tokens/phone"), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "days": 0}, "days"),
        ({"name": "a b"}, "name"),
        ({"name": "x", "scopes": ["all"]}, "scopes"),
        ({"name": "x", "scopes": []}, "scopes"),
    ],
)
async def test_a_wrong_token_is_refused(shared: Standing, body: dict[str, object], field: str) -> None:
    problem(await shared.http.post("/v1/tokens", json=body), 400, "bad_request", field)


async def test_settings_say_where_they_come_from(shared: Standing) -> None:
    found = {each["key"]: each for each in (await shared.http.get("/v1/settings")).json()["settings"]}
    assert found["server.port"]["origin"] != "default"
    assert found["server.port"]["about"]


def test_keys_among_the_settings_are_not_shown() -> None:
    shown = _hidden({"local": {"api_key": "sk-1", "env": {"GITHUB_TOKEN": "t"}, "models": ["m"]}})
    assert shown == {"local": {"api_key": "(hidden)", "env": {"GITHUB_TOKEN": "(hidden)"}, "models": ["m"]}}
