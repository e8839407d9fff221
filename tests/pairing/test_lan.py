"""`portico serve --lan` end to end: real addresses, TLS, curl and Chromium, in a network namespace of the test."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.doors.web import pages_folder
from tests.pairing.lan_walk import ADDRESS
from tests.process import environment

ROOT = Path(__file__).parents[2]


def namespace() -> list[str]:
    """The command that gives a program a network of its own."""
    wanted = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    missing = [each for each in ("unshare", "ip", "curl") if shutil.which(each) is None]
    if missing or subprocess.run([*wanted, "true"], check=False, capture_output=True).returncode:
        pytest.skip(f"network namespaces are not available here ({', '.join(missing) or 'not permitted'})")
    return wanted


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("lan")
    browser = shutil.which("chromium") and shutil.which("certutil") and (pages_folder() / "pair.html").is_file()
    command = [
        *namespace(),
        sys.executable,
        "-m",
        "tests.pairing.lan_walk",
        str(folder),
        *(["browser"] if browser else []),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


def test_the_code_names_the_private_address(seen: dict[str, Any]) -> None:
    code, printed, errors = seen["pair"]
    assert code == 0, errors
    assert re.search(rf"https://{re.escape(ADDRESS)}:\d+/pair", printed)
    assert seen["endpoint"].startswith(f"https://{ADDRESS}:")


def test_plain_http_gets_no_answer(seen: dict[str, Any]) -> None:
    assert seen["plain"]["code"] != 0
    assert (seen["plain"]["head"], seen["plain"]["body"]) == ("", "")


def test_only_the_private_address_listens(seen: dict[str, Any]) -> None:
    assert seen["loopback"]["code"] == 7  # cannot connect
    assert "421" in seen["other name"]["head"].splitlines()[0]


def test_a_device_that_does_not_know_the_authority_is_warned(seen: dict[str, Any]) -> None:
    assert seen["stranger"]["code"] == 60  # the certificate is not known
    assert seen["authority"], "the page offers the authority for installation"


def test_a_device_that_knows_it_is_paired_with_a_secure_cookie(seen: dict[str, Any]) -> None:
    head = seen["paired"]["head"]
    assert "303" in head.splitlines()[0], seen["paired"]
    assert re.search(r"(?im)^location: /app/inbox#key=[0-9a-f]{64}$", head)
    assert re.search(r"(?im)^set-cookie: __Host-portico-\d+=.*; Secure", head)
    assert "/pair?error=1" in seen["again"]["head"], "a code is valid once"


def test_chromium_trusts_it_with_the_authority_only(seen: dict[str, Any]) -> None:
    if "page" not in seen:
        pytest.skip("chromium, certutil or the built pages are missing here")
    assert "pair-device" in seen["page"][0]
    page, log = seen["page of a stranger"]
    assert "pair-device" not in page
    assert "net_error -202" in log, "ERR_CERT_AUTHORITY_INVALID"


def test_the_same_authority_signs_the_next_address(seen: dict[str, Any]) -> None:
    assert seen["moved"]["code"] == 0


def test_a_public_address_is_refused(seen: dict[str, Any]) -> None:
    code, errors = seen["public"]
    assert code != 0
    assert "is public" in errors
