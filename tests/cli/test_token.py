"""`portico token`: new, list, revoke, against a running host."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.process import HostProcess, inside, portico


def test_a_token_is_made_shown_once_used_and_revoked(host: HostProcess, home: Path) -> None:
    token = portico(home, "token", "new", "phone", "--scope", "read").stdout.strip()
    assert len(token) >= 43
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=host.url, headers=headers, trust_env=False) as http:
        assert http.get("/v1").json()["you"] == "phone"
        assert http.post("/v1/sessions").status_code == 403
        listed = portico(home, "token", "list")
        assert listed.stdout.split("\t")[:2] == ["phone", "read"]
        assert token not in listed.stdout
        assert json.loads(inside(home, "token", "list", "--json").stdout)[0]["scopes"] == ["read"]
        assert portico(home, "token", "revoke", "phone").returncode == 0
        assert http.get("/v1").status_code == 401
    assert inside(home, "token", "revoke", "phone").returncode == 66


def test_json_and_wrong_input(home: Path) -> None:
    made = json.loads(inside(home, "token", "new", "laptop", "--json").stdout)
    assert (made["name"], len(made["scopes"])) == ("laptop", 7)
    assert inside(home, "token", "new", "laptop").returncode == 73
    wrong = inside(home, "token", "new", "tablet", "--scope", "root")
    assert (wrong.returncode, "choose from read" in wrong.stderr) == (64, True)
    assert json.loads(inside(home, "token", "revoke", "laptop", "--json").stdout) == {"revoked": "laptop"}


def test_tokens_made_at_once_are_all_kept(home: Path) -> None:
    """Of eight, seven were kept: two had read the same list."""
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: portico(home, "token", "new", f"many-{number}"), range(4)))
    assert [each.returncode for each in made] == [0] * 4
    kept = {each["name"] for each in json.loads(inside(home, "token", "list", "--json").stdout)}
    assert {f"many-{number}" for number in range(4)} <= kept


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize(
    "verb",
    [["token", "new", "other"], ["token", "revoke", "kept"], ["people", "add", "ann"], ["agents", "default", "demo"]],
    ids=" ".join,
)
def test_a_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str], number: int
) -> None:
    """`token new` printed a traceback. What was there before stays."""
    home = tmp_path / "home"
    assert inside(home, "token", "new", "kept").returncode == 0
    before = (home / "tokens.json").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    done = inside(home, *verb)
    assert (done.returncode, done.stderr.count("\n"), "Traceback" in done.stderr) == (74, 1, False), done.stderr
    assert os.strerror(number) in done.stderr
    assert (home / "tokens.json").read_bytes() == before
    assert {each.name for each in home.iterdir() if each.name.startswith(".tokens")} == set()
