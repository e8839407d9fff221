"""Seeded damages to a whole state folder, seen from outside: what a host serves of it is right or named as lost.

Any file of the folder is hurt (bits, cuts, emptied, missing, zeros). The host starts, or refuses to with words that say
what to do. If it starts: no answer is an error of ours, no text is one that nobody wrote, a token has no more
than its scopes, and what was refused stays refused or is named as lost.

`PORTICO_DAMAGES=300` looks at more of them.
"""

import contextlib
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from portico.features.people.people import add_person
from portico.kernel.errors import PorticoError
from portico.kernel.events import HOST, LogLost
from portico.server.identity import new_token, revoke_token
from tests.doors.standing import Standing, standing
from tests.log.test_damage import blank, cut, flip

CASES = int(os.environ.get("PORTICO_DAMAGES", "20"))
SAID = [f"say number {number} " + "abc " * 300 for number in range(6)]
PAGES = [
    *("/healthz", "/v1/sessions", "/v1/board", "/v1/inbox", "/v1/jobs", "/v1/automations", "/v1/audit", "/v1/grants"),
    *("/v1/agents", "/v1/tokens", "/v1/people", "/v1/usage", "/v1/settings", "/v1/search?q=number", "/v1/terminals"),
]
SETTINGS = '[approvals]\ndeny_commands = ["mkfs"]\n'


class Stored(NamedTuple):
    folder: Path
    sessions: list[str]
    read: str
    revoked: str
    seen: int
    """How many events the owner had been told of."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    folder = tmp_path_factory.mktemp("stored")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home/settings.toml").write_text(SETTINGS)
    async with standing(folder, agents=("scripted",)) as here:
        home = here.home
        add_person(home, "ada", ["read"])
        read, revoked = new_token(home, "reader", ["read"]), new_token(home, "gone", ["admin"])
        revoke_token(home, "gone")
        sessions = [await here.start(cwd=str(folder)) for _ in range(2)]
        for number, text in enumerate(SAID):
            await here.say(sessions[number % 2], f"[[say:{text}]] [[tool:look|{number}]]")
        grant = {"agent": "scripted", "tool": "shell", "allow": False, "project": str(folder)}
        await _do(here, "grant.add", grant)
        hook = {
            "name": "nightly",
            "trigger": {"schedule": {"cron": "0 3 * * *"}},
            "prompt": {"text": "go", "agent": "x"},
        }
        await _do(here, "automation.add", hook)
        await here.http.get("/v1/search?q=number")
        seen = here.server.host.log.seq
    return Stored(folder, sessions, read, revoked, seen)


async def _do(here: Standing, name: str, said: dict[str, Any]) -> None:
    answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
    assert answer.status_code in (200, 201, 400), answer.text


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def missing(path: Path, chance: random.Random) -> None:
    path.unlink()


HARMS: list[Callable[[Path, random.Random], None]] = [flip, cut, blank, empty, missing]


def cases(folder: Path) -> Iterator[tuple[str, Callable[[Path, random.Random], None], random.Random]]:
    files = sorted(
        str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file() and each.stat().st_size
    )
    for number in range(CASES):
        chance = random.Random(f"damage {number}")
        # The log is most of the folder, and most of what can go wrong.
        yield chance.choice([*files, *["log.db"] * 4]), chance.choice(HARMS), chance


async def test_what_is_served_of_a_damaged_folder_is_right_or_named(
    stored: Stored, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logged = caplog
    results: Counter[str] = Counter()
    for number, (name, harm, chance) in enumerate(cases(stored.folder / "home")):
        folder = tmp_path / str(number)
        shutil.copytree(stored.folder, folder)
        harm(folder / "home" / name, chance)
        try:
            logged.clear()
            found = await look(stored, folder, logged)
        except Exception as error:
            raise AssertionError(f"case {number}: {harm.__name__} of {name}: {error!r}") from error
        results[found] += 1
        shutil.rmtree(folder)
    print(dict(results))
    assert results["whole"] > 0
    assert set(results) <= {"whole", "named", "refused"}


async def look(stored: Stored, folder: Path, logged: pytest.LogCaptureFixture) -> str:
    try:
        async with contextlib.AsyncExitStack() as stack:
            here = await stack.enter_async_context(standing(folder, agents=("scripted",)))
            return await compare(stored, here, logged)
    except PorticoError as error:
        return "refused" if error.message.count(" ") > 4 else f"refused without a word: {error.message}"


async def compare(stored: Stored, here: Standing, logged: pytest.LogCaptureFixture) -> str:
    for page in PAGES:
        answer = await here.http.get(page)
        assert answer.status_code < 500 or _named(answer.text), f"{page}: {answer.status_code} {answer.text[:300]}"
    async with here.client(stored.revoked) as revoked, here.client(stored.read) as reader:
        assert (await revoked.get("/v1/sessions")).status_code == 401
        written = await reader.post("/v1/sessions", json={"agent": "scripted"})
        assert written.status_code in (401, 403), "a token has grown"
    found = [await _said(here, session) for session in stored.sessions]
    kept = [text for each in found for text in each]
    assert set(kept) <= {each.strip() for each in SAID}, "a text that nobody wrote"
    if len(kept) == len(SAID):
        return "whole"
    assert await _loss_is_named(stored, here, logged.text), (
        f"{len(SAID) - len(kept)} texts are gone, and nobody says so"
    )
    return "named"


async def _said(here: Standing, session: str) -> list[str]:
    answer = await here.http.get(f"/v1/sessions/{session}")
    if answer.status_code != 200:
        assert answer.status_code == 404 or _named(answer.text), answer.text
        return []
    parts = [part for turn in answer.json()["turns"] for part in turn.get("parts", ()) if part["part"] == "text"]
    return [part["text"].strip() for part in parts if part.get("kind", "text") == "text" and part.get("text")]


def _named(text: str) -> bool:
    return any(word in text for word in ("damaged", "log_unavailable", "unreadable", "lost"))


async def _loss_is_named(stored: Stored, here: Standing, logged: str) -> bool:
    """To who reads the session, or in the host's own channel and log."""
    events = [(await here.http.get(f"/v1/sessions/{each}/events")).text for each in stored.sessions]
    lost = [each.event for each in await here.server.host.log.read(HOST) if isinstance(each.event, LogLost)]
    return bool(lost) or any('"unreadable"' in each for each in events) or "the log lost a channel" in logged
