"""A backup of a running host is whole, is verified, and comes back."""

import asyncio
import tarfile
from pathlib import Path

import pytest

from portico.features.people.people import add_person
from portico.kernel.errors import BadRequest, HomeInUse
from portico.kernel.events import Message, TurnEnded
from portico.server.home import Home
from portico.server.identity import new_token
from portico.server.maintenance.backup import back_up, restore, verify
from tests.doors.standing import standing
from tests.process import inside


async def test_a_running_host_is_backed_up_in_the_middle_of_its_work(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        session = await here.start(cwd=str(tmp_path))
        await here.say(session, "[[say:before the backup]]")
        add_person(here.home, "ann", ["read"])
        ann = new_token(here.home, "laptop", ["read"], "ann")
        running = await (await here.server.host.get(session)).send(Message("[[deltas:2000]] [[gap:1]]"), by="test")
        file = tmp_path / "backup.tar.gz"
        made = await asyncio.to_thread(back_up, here.home.path, file)
        assert file.stat().st_mode & 0o777 == 0o600
        assert set(made.sums) == {"log.db", "token", "tokens.json", "people.json", "cookie-key"}
        assert await asyncio.to_thread(verify, file) == made
        assert (await here.server.host.get(session)).state.turn(running) is not None
        token = here.home.token()
    home = Home(tmp_path / "other" / "home")
    home.make()
    restore(file, home.path)
    assert home.token() == token
    async with standing(tmp_path / "other") as there:
        async with there.client(ann) as laptop:
            assert (await laptop.get("/v1/people/me")).json()["person"] == "ann", "a token ends with its person"
        state = (await there.http.get(f"/v1/sessions/{session}")).json()
        assert state["turns"][0]["parts"][-1]["text"] == "before the backup"
        assert state["turns"][1]["outcome"] == "interrupted"
        ended = [
            each for each in await there.server.host.log.read(f"session/{session}") if isinstance(each.event, TurnEnded)
        ]
        assert len(ended) == 2
        assert (await there.say(session, "[[say:and after]]"))["turns"][-1]["outcome"] == "completed"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    async def talk() -> None:
        async with standing(tmp_path) as here:
            await here.say(await here.start(cwd=str(tmp_path)), "[[say:hello]]")

    asyncio.run(talk())
    return tmp_path / "home"


def test_secrets_can_be_left_out(filled: Path, tmp_path: Path) -> None:
    done = inside(filled, "backup", str(tmp_path / "b"), "--without-secrets", "--json")
    assert (done.returncode, '"files": ["log.db"]' in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("place", [10, -2000, "half"])
def test_a_damaged_backup_is_refused_and_nothing_is_touched(filled: Path, tmp_path: Path, place: int | str) -> None:
    file = tmp_path / "b"
    back_up(filled, file)
    data = bytearray(file.read_bytes())
    if isinstance(place, int):
        data[place] ^= 0xFF
    file.write_bytes(data[: len(data) // 2] if place == "half" else data)
    before = sorted(each.name for each in filled.iterdir())
    with pytest.raises(BadRequest):
        restore(file, filled, replace=True)
    assert sorted(each.name for each in filled.iterdir()) == before


def test_what_is_no_backup_is_refused(filled: Path, tmp_path: Path) -> None:
    """The attack: an archive that writes outside of the home, or brings files of its own."""
    evil = tmp_path / "evil.tar.gz"
    with tarfile.open(evil, "w:gz") as archive:
        for name, text in (
            ("manifest.json", '{"version":"1","schema":1,"time":0,"seq":0,"sums":{"../x":"0"}}'),
            ("../x", ""),
        ):
            (tmp_path / "member").write_text(text)
            archive.add(tmp_path / "member", name)
    plain = tmp_path / "plain"
    plain.write_text("hello")
    for file in (evil, plain, tmp_path / "none"):
        with pytest.raises(BadRequest):
            restore(file, tmp_path)
    assert not (tmp_path.parent / "x").exists()


def test_a_home_with_a_log_is_put_aside_only_by_force(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "b"
    assert inside(filled, "backup", str(file)).returncode == 0
    assert inside(filled, "backup", str(file)).returncode == 64
    refused = inside(filled, "restore", str(file))
    assert (refused.returncode, "--force" in refused.stderr) == (64, True)
    assert inside(filled, "restore", str(file), "--force").returncode == 0
    assert [each.name for each in filled.iterdir() if each.name.startswith("log.db.before-restore-")]


async def test_a_home_in_use_is_not_restored_into(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        await asyncio.to_thread(back_up, here.home.path, tmp_path / "b")
        with pytest.raises(HomeInUse):
            Home(here.home.path).lock()
