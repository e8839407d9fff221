"""Secrets of a running host: who may set them, and that no value leaves it."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from portico.kernel.errors import NotFound
from portico.server.home import Home
from tests.doors.standing import problem, standing
from tests.process import HostProcess, portico

CANARY = "c4nary-4f1bd9e07a-value"


async def test_a_secret_is_set_and_listed_but_never_shown(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        answer = await here.http.put("/v1/secrets/GH_TOKEN", json={"value": CANARY})
        assert (answer.status_code, answer.json()["name"]) == (200, "GH_TOKEN")
        wrong = [
            await here.http.put("/v1/secrets/gh", json={"value": CANARY}),
            await here.http.put("/v1/secrets/OTHER", json={"value": CANARY, "extra": CANARY}),
            await here.http.put("/v1/secrets/OTHER", json={"value": [CANARY]}),
            await here.http.put("/v1/secrets/OTHER", json={"value": CANARY, "id": CANARY}),
            await here.http.post("/v1/commands", json={"command": "secret.set", "name": "x", "value": CANARY}),
        ]
        assert [each.status_code // 100 for each in wrong] == [4] * len(wrong)
        listed = await here.http.get("/v1/secrets")
        assert [(each["name"], each["place"]) for each in listed.json()["secrets"]] == [("GH_TOKEN", "file")]
        audit = await here.http.get("/v1/audit?limit=500")
        assert "secret.set" in audit.text
        seen = [each.text for each in (answer, *wrong, listed, audit)]
        for path in ("/v1/settings", "/v1/sessions", "/healthz", "/metrics"):
            seen.append((await here.http.get(path)).text)
        assert (await here.http.delete("/v1/secrets/GH_TOKEN")).status_code == 204
        problem(await here.http.delete("/v1/secrets/GH_TOKEN"), 404, "not_found")
    stored = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert [text for text in seen if CANARY in text] == []
    assert [data for data in stored if CANARY.encode() in data] == []


async def test_setting_and_listing_need_the_scope_admin(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        scopes = ["read", "drive", "approve", "files", "terminal", "jobs"]
        token = (await here.http.post("/v1/tokens", json={"name": "most", "scopes": scopes})).json()["token"]
        async with here.client(token) as other:
            problem(await other.put("/v1/secrets/A", json={"value": CANARY}), 403, "forbidden")
            problem(await other.get("/v1/secrets"), 403, "forbidden")
            problem(await other.delete("/v1/secrets/A"), 403, "forbidden")


async def test_a_step_receives_what_it_names_and_all_values_are_masked(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        for name in ("ONE", "TWO"):
            await here.http.put(f"/v1/secrets/{name}", json={"value": f"{CANARY}-{name}"})
        secrets = here.server.secrets
        granted = await secrets.resolve(["ONE"])
        assert granted.env == {"ONE": f"{CANARY}-ONE"}
        assert CANARY not in repr(granted)
        assert granted.mask.text(f"{CANARY}-ONE {CANARY}-TWO") == "[redacted: ONE] [redacted: TWO]"
        await here.http.put("/v1/secrets/ONE", json={"value": "another-value"})
        await here.http.delete("/v1/secrets/TWO")
        mask = await secrets.mask()
        assert (
            mask.text(f"{CANARY}-ONE {CANARY}-TWO another-value") == "[redacted: ONE] [redacted: TWO] [redacted: ONE]"
        )
        assert await secrets.check(["ONE", "TWO"]) == ["TWO"]
        with pytest.raises(NotFound, match="portico secrets set TWO"):
            await secrets.resolve(["ONE", "TWO"])


async def test_two_concurrent_calls_are_both_kept(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        names = [f"S{number}" for number in range(8)]
        await asyncio.gather(*(here.http.put(f"/v1/secrets/{name}", json={"value": CANARY}) for name in names))
        listed = (await here.http.get("/v1/secrets")).json()["secrets"]
        assert [each["name"] for each in listed] == names


def test_the_command_line_takes_the_value_from_standard_input(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = portico(home, "secrets", "set", "GH_TOKEN", "--json", text=f"{CANARY}\n")
    assert (made.returncode, json.loads(made.stdout)["name"]) == (0, "GH_TOKEN")
    wrong = [
        portico(home, "secrets", "set", "gh", text=CANARY),
        portico(home, "secrets", "set", "SHORT", text="abc"),
        portico(home, "secrets", "set", "A", CANARY, text="x"),
        portico(home, "secrets", "remove", "OTHER"),
    ]
    assert [each.returncode for each in wrong] == [64, 64, 2, 66]
    listed = portico(home, "secrets", "list")
    assert listed.stdout.split("\t")[:2] == ["GH_TOKEN", "file"]
    assert json.loads((home / "secrets.json").read_text())["GH_TOKEN"]["value"] == CANARY
    assert portico(home, "secrets", "remove", "GH_TOKEN").returncode == 0
    assert portico(home, "secrets", "list", "--json").stdout.strip() == "[]"
    told = "".join(each.stdout + each.stderr for each in (made, *wrong[:2], wrong[3], listed))
    assert CANARY not in told


def test_the_command_line_asks_the_host_that_runs(tmp_path: Path) -> None:
    with HostProcess(tmp_path / "home") as host:
        assert portico(host.home, "secrets", "set", "GH_TOKEN", text=CANARY).returncode == 0
        assert "GH_TOKEN" in portico(host.home, "secrets", "list").stdout
        headers = {"Authorization": f"Bearer {Home(host.home).token()}"}
        audit = httpx.get(f"{host.url}/v1/audit", headers=headers, trust_env=False).text
        assert ("secret.set" in audit, CANARY in audit) == (True, False)
        assert portico(host.home, "secrets", "remove", "GH_TOKEN").returncode == 0
    assert CANARY not in host.log()
