"""SECURITY 11 and 27: the private folder, its one host, and what lies in it."""

import os
import pwd
import stat
from pathlib import Path

import msgspec
import pytest

from portico.client import context
from portico.kernel.errors import BadRequest, HomeInUse
from portico.server.home import Home, HostEndpoint, alive, secret_key, write_private
from tests.process import inside


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.make()
    return home


def test_which_folder_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTICO_HOME", str(tmp_path / "env"))
    assert Home.default(tmp_path / "given").path == tmp_path / "given"
    assert Home.default().path == tmp_path / "env"
    monkeypatch.delenv("PORTICO_HOME")
    assert Home.default().path.name == "portico"
    monkeypatch.chdir(tmp_path)
    assert Home.default(Path("relative")).path == tmp_path / "relative"


def test_a_user_without_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, as a number that the system does not know: every command ended in a traceback."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "PORTICO_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(BadRequest, match="Set HOME or PORTICO_HOME"):
        Home.default()
    assert Home.default(tmp_path).path == tmp_path
    assert context.chosen() is None
    with pytest.raises(BadRequest, match="Set HOME or XDG_CONFIG_HOME"):
        context.write(context.Contexts())


def test_the_folder_is_private_also_when_it_was_not(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.mkdir(mode=0o755)
    Home(path).make()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_file_in_its_place_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match=r"it is a file\. Choose another with --home") as error:
        Home(tmp_path / "file").make()
    assert error.value.field == "home"


@pytest.mark.parametrize(
    "verb", [["serve", "--port", "0"], ["doctor"], ["sessions", "list"], ["token", "list"]], ids=" ".join
)
def test_a_file_as_the_home_folder_is_a_clear_error_of_every_verb(tmp_path: Path, verb: list[str]) -> None:
    """`doctor` and `serve` ended with a traceback, `sessions list` advised to start a host there."""
    (tmp_path / "file").write_text("")
    done = inside(tmp_path / "file", *verb)
    assert (done.returncode, "it is a file. Choose another with --home" in done.stderr) == (64, True), done.stderr


def test_one_host_at_a_time(home: Home) -> None:
    home.lock()
    other = Home(home.path)
    with pytest.raises(HomeInUse, match="--home"):
        other.lock()
    home.unlock()
    other.lock()
    other.unlock()
    other.unlock()  # twice is no matter


def test_private_files_are_whole_and_private(home: Home) -> None:
    path = home.path / "file"
    old = os.umask(0)
    try:
        write_private(path, b"one")
        write_private(path, b"two")
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.name for each in home.path.iterdir()} == {"file", ".gitignore"}  # no draft is left


def test_a_failed_write_leaves_the_old_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.path / "file"
    write_private(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert {each.name for each in home.path.iterdir()} == {"file", ".gitignore"}


def test_the_endpoint_file(home: Home) -> None:
    assert home.endpoint() is None
    endpoint = HostEndpoint("http://127.0.0.1:8888", os.getpid(), str(home.token_path), "1.0")
    home.announce(endpoint)
    assert home.endpoint() == endpoint
    home.retract()
    home.retract()
    assert home.endpoint() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"url": "\xff", "pid": 1, "token_path": null, "version": "1"}',
        b'{"url": "http://x", "pid": "1", "token_path": null, "version": "1"}',
        b'{"url": "http://x", "pid": 0, "token_path": null, "version": "1"}',
        b'{"url": "http://x", "pid": -1, "token_path": null, "version": "1"}',
        b'{"url": "file:///etc/passwd", "pid": 1, "token_path": null, "version": "1"}',
        b'{"url": "http://x", "pid": 99999999999999, "token_path": null, "version": "1"}',
    ],
)
def test_a_strange_endpoint_file_is_ignored(home: Home, content: bytes) -> None:
    home.endpoint_path.write_bytes(content)
    assert home.endpoint() is None


def test_a_folder_in_place_of_the_endpoint_file_is_ignored(home: Home) -> None:
    home.endpoint_path.mkdir()
    assert home.endpoint() is None


def test_more_fields_than_we_know_are_no_matter(home: Home) -> None:
    newer = {"url": "http://127.0.0.1:1", "pid": os.getpid(), "token_path": None, "version": "9", "doors": ["x"]}
    home.endpoint_path.write_bytes(msgspec.json.encode(newer))
    assert home.endpoint() is not None


def test_who_is_alive() -> None:
    assert alive(os.getpid())
    assert alive(1)
    assert not alive(2**22 + 1)
    assert not alive(10**30)


LOST = [b"", b"\0" * 43, b"\0" * 4096, b"x" * 43, b"short", b"ab" * 20]
"""What a disk leaves of a secret: a start that took it for one had a secret that everybody can guess."""


@pytest.mark.parametrize("left", [*LOST, b"\x80" * 43, bytes(range(40))])
def test_a_damaged_token_is_made_anew(home: Home, left: bytes) -> None:
    home.token_path.write_bytes(left)
    token = home.token()
    assert (len(token), token.encode() == left) == (43, False)
    assert home.token() == token


@pytest.mark.parametrize("left", LOST)
def test_a_damaged_key_is_made_anew_and_that_is_said(home: Home, left: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = home.path / "hooks.key"
    path.write_bytes(left)
    key = secret_key(path)
    assert (len(key), key == left, "was damaged" in caplog.text) == (32, False, True)
    assert secret_key(path) == key == path.read_bytes()
