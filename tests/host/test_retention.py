"""What the rules of retention do, as a table; and that they do it, with every session in the audit record."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.people.people import add_person
from portico.features.people.retention import DAY_MS, Retention, RetentionBounds, plan
from portico.kernel import commands as c
from portico.kernel.state import Summary
from portico.server.identity import new_token, remove_person
from tests.doors.standing import standing

NOW = 1_000 * DAY_MS


def idle(ident: str, days: float, **more: Any) -> Summary:
    at = NOW - int(days * DAY_MS)
    given = {"cwd": "/srv/app", "owner": "ann", "status": "idle", "created": at, "modified": at, **more}
    return Summary(id=ident, agent="a", model="m", title="t", pos=1, **given)


USUAL = RetentionBounds(archive_days=10, delete_days=30)


@pytest.mark.parametrize(
    ("session", "rules", "action"),
    [
        (idle("s", 9), [USUAL], None),
        (idle("s", 10), [USUAL], "archive"),
        (idle("s", 10, archived=True), [USUAL], None),
        (idle("s", 30), [USUAL], "delete"),
        (idle("s", 30, archived=True), [USUAL], "delete"),
        (idle("s", 99), [RetentionBounds()], None),
        (idle("s", 99), [], None),
        (idle("s", 99, status="running"), [USUAL], None),
        (idle("s", 99, status="waiting"), [USUAL], None),
        (idle("s", 99, queued=1), [USUAL], None),
        (idle("s", 99, status="failed"), [USUAL], "delete"),
        (idle("s", 99), [RetentionBounds(folder="/srv/app"), USUAL], None),
        (idle("s", 99, cwd="/srv/app/below"), [RetentionBounds(folder="/srv/app"), USUAL], None),
        (idle("s", 99, cwd="/srv/app-evil"), [RetentionBounds(folder="/srv/app"), USUAL], "delete"),
        (idle("s", 5), [RetentionBounds(owner="ann", delete_days=5), USUAL], "delete"),
        (idle("s", 5, owner=""), [RetentionBounds(owner="ann", delete_days=5), USUAL], None),
        (idle("s", 5), [RetentionBounds(owner="ann", folder="/elsewhere", delete_days=5), USUAL], None),
    ],
)
def test_what_a_rule_does(session: Summary, rules: list[RetentionBounds], action: str | None) -> None:
    assert [each.action for each in plan([session], rules, NOW)] == ([action] if action else [])


def test_a_family_is_as_old_as_its_youngest() -> None:
    old, young = idle("old", 99), idle("young", 1, parent="old")
    assert plan([old, young], [USUAL], NOW) == []
    assert [each.session for each in plan([old, idle("young", 98, parent="old")], [USUAL], NOW)] == ["old"]


async def test_rules_are_shown_and_then_done(tmp_path: Path) -> None:
    flags = {"retention.rules": [{"folder": str(tmp_path), "delete_days": 1e-9}]}
    async with standing(tmp_path, flags=flags) as here:
        session = await here.start()
        shown = (await here.http.post("/v1/retention", json={"dry_run": True})).json()
        assert [(each["session"], each["action"]) for each in shown["sessions"]] == [(session, "delete")]
        assert here.server.host.has(session)
        await here.http.post("/v1/retention", json={})
        assert not here.server.host.has(session)
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        assert [each["detail"]["session"] for each in audit if each["action"] == "retention.delete"] == [session]


async def test_a_person_is_erased(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        add_person(here.home, "ann", c.SCOPES[:-1])
        mine = await here.start()
        async with here.client(new_token(here.home, "laptop", list(c.SCOPES), "ann")) as ann:
            theirs = (await ann.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
            assert (await ann.post("/v1/people/ann/erase", json={})).status_code == 403
        erased = (await here.http.post("/v1/people/ann/erase", json={})).json()
        assert [each["session"] for each in erased["sessions"]] == [theirs]
        assert (here.server.host.has(theirs), here.server.host.has(mine)) == (False, True)


@pytest.mark.parametrize("removed", [False, True], ids=["before removal", "after removal"])
@pytest.mark.parametrize("doing", ["idle", "waiting", "nothing"])
async def test_the_data_of_a_person_who_leaves_can_be_erased(tmp_path: Path, removed: bool, doing: str) -> None:
    """Bug: `people remove` followed by `people erase`, as the guide describes, failed with "There is no person" when
    nothing of theirs was idle."""
    async with standing(tmp_path, agents=("scripted", "demo")) as here:
        host, theirs = here.server.host, []
        add_person(here.home, "ann", c.SCOPES[:-1])
        async with here.client(new_token(here.home, "laptop", list(c.SCOPES), "ann")) as ann:
            if doing != "nothing":
                started = await ann.post("/v1/sessions", json={"agent": "demo", "cwd": str(tmp_path)})
                theirs.append(started.json()["id"])
            if doing == "waiting":
                await ann.post(f"/v1/sessions/{theirs[0]}/messages", json={"text": "write something"})
                await (await host.get(theirs[0])).wait_until(lambda state: state.status == "waiting")
        if removed:
            remove_person(here.home, "ann")
        if theirs or not removed:
            planned = (await here.http.post("/v1/people/ann/erase", json={"dry_run": True})).json()
            erased = await here.http.post("/v1/people/ann/erase", json={})
            assert erased.status_code == 200, erased.text
            assert [each["session"] for each in erased.json().get("sessions", [])] == theirs
            assert [each["session"] for each in planned.get("sessions", [])] == theirs
            assert [ident for ident in theirs if host.has(ident)] == []
        again = await here.http.post("/v1/people/ann/erase", json={})
        assert again.status_code == (404 if removed else 200)
        assert "nothing to erase" in again.text or not removed


async def test_a_draft_without_a_message_is_deleted_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any rule of retention."""
    async with standing(tmp_path) as here:
        host = here.server.host
        draft = (await here.http.post("/v1/sessions", json={"draft": True})).json()["id"]
        used = (await here.http.post("/v1/sessions", json={"draft": True})).json()["id"]
        await here.http.post(f"/v1/sessions/{used}/messages", json={"text": "[[say:hi]]"})
        retention, now = here.server.app.features[Retention], host.now()
        monkeypatch.setattr(host, "now", lambda: now + DAY_MS - 60_000)
        await retention.sweep()
        assert {each.id for each in host.list(drafts=True)} == {draft, used}
        monkeypatch.setattr(host, "now", lambda: now + 2 * DAY_MS)
        await retention.sweep()
        assert [each.id for each in host.list(drafts=True)] == [used]
