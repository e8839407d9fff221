"""`portico people`, `token new --person`, `sessions share` and `retention`, against a running host."""

import json
from pathlib import Path

import httpx

from tests.process import HostProcess, inside, portico


def test_people_come_share_and_go(host: HostProcess, home: Path) -> None:
    assert "token new NAME --person ann@example.org" in portico(home, "people", "add", "ann@example.org").stderr
    assert inside(home, "people", "add", "ben", "--scope", "read").returncode == 0
    assert inside(home, "people", "add", "ben").returncode == 73
    assert inside(home, "people", "add", "owner").returncode == 64
    listed = json.loads(inside(home, "people", "list", "--json").stdout)
    assert [each["name"] for each in listed] == ["ann@example.org", "ben"]
    assert all("admin" not in each["scopes"] for each in listed)
    tokens = {
        each["name"]: inside(home, "token", "new", "laptop", "--person", each["name"]).stdout.strip() for each in listed
    }
    assert inside(home, "token", "new", "x", "--person", "nobody").returncode == 66
    with (
        httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {tokens['ann@example.org']}"}) as ann,
        httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {tokens['ben']}"}) as ben,
    ):
        session = ann.post("/v1/sessions", json={"agent": "scripted"}).json()["id"]
        assert ben.get(f"/v1/sessions/{session}").status_code == 404
        shared = inside(home, "sessions", "share", session, "ben", "--right", "read", "--json")
        assert json.loads(shared.stdout)["shares"] == {"ben": ["read"]}
        assert ben.get(f"/v1/sessions/{session}").status_code == 200
        assert "shared with nobody" in inside(home, "sessions", "share", session, "ben", "--off").stderr
        assert ben.get(f"/v1/sessions/{session}").status_code == 404
        planned = json.loads(inside(home, "people", "erase", "ann@example.org", "--dry-run", "--json").stdout)
        assert [each["session"] for each in planned["sessions"]] == [session]
        assert inside(home, "people", "erase", "ann@example.org", "--yes").returncode == 0
        assert ann.get(f"/v1/sessions/{session}").status_code == 404
        assert inside(home, "people", "remove", "ann@example.org").returncode == 0
        assert ann.get("/v1").status_code == 401


def test_admins_of_the_settings_are_admins_and_tokens_tell_what_they_may(host: HostProcess, home: Path) -> None:
    """Who was added by hand was none, and every person's token was listed with the scope `admin`."""
    (home / "settings.toml").write_text('[people]\nadmins = ["cid"]\n')
    for name in ("ann", "cid"):
        assert inside(home, "people", "add", name).returncode == 0
    tokens = {name: inside(home, "token", "new", "t", "--person", name).stdout.strip() for name in ("ann", "cid")}
    listed = {each["person"]: each["scopes"] for each in json.loads(inside(home, "token", "list", "--json").stdout)}
    for name, token in tokens.items():
        with httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
            me, people = client.get("/v1/people/me").json(), client.get("/v1/people")
            assert (me["admin"], sorted(listed[name])) == (name == "cid", me["scopes"])
            assert [each["scopes"] for each in me["tokens"]] == [listed[name]]
            refused = "'ann' or the token 't' has no scope 'admin'; make a token that has it, or ask an admin for it."
            assert people.json().get("error") == (None if name == "cid" else refused)
    wrong = inside(home, "sessions", "share", "session-1", "ann", "--right", "own")
    assert (wrong.returncode, wrong.stderr) == (
        64,
        "portico: There is no right 'own'; choose from read, drive, approve.\n",
    )


def test_retention_without_rules_does_nothing(host: HostProcess, home: Path) -> None:
    assert json.loads(inside(home, "retention", "--dry-run", "--json").stdout) == {"dry_run": True, "sessions": []}
