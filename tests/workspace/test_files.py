"""Files through the jail: ranges, bounds, atomic writes, trees."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound, PorticoError, TooLarge
from portico.workspace import files as module
from portico.workspace import tree
from portico.workspace.atomic_write import TEMPORARY
from portico.workspace.files import DirectoryEntry, Files, Mode, is_binary
from portico.workspace.jail import Jail


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


@pytest.fixture
def files(root: Path) -> Files:
    return Files(Jail([root]))


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def left_behind(root: Path) -> list[str]:
    return [name for _, folders, names in os.walk(root) for name in folders + names if name.startswith(TEMPORARY)]


async def test_reads_whole_and_in_ranges(files: Files, root: Path) -> None:
    (root / "a.txt").write_bytes(b"0123456789")
    whole = await files.read("a.txt")
    assert (whole.data, whole.size, whole.binary, whole.content_type) == (b"0123456789", 10, False, "text/plain")
    assert (await files.read("a.txt", 3, 4)).data == b"3456"
    assert (await files.read("a.txt", 8, 100)).data == b"89"
    assert (await files.read("a.txt", 50)).data == b""


async def test_a_read_over_the_limit_needs_a_range(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_MAX", 10)
    (root / "fits").write_bytes(b"x" * 10)
    (root / "large").write_bytes(b"x" * 11)
    assert len((await files.read("fits")).data) == 10
    with pytest.raises(TooLarge):
        await files.read("large")
    with pytest.raises(TooLarge):
        await files.read("large", 0, 11)
    assert len((await files.read("large", 1)).data) == 10


async def test_lines_of_text(files: Files, root: Path) -> None:
    (root / "a").write_text("one\ntwo\nthree\nfour")
    some = await files.read_text("a", 2, 3)
    assert (some.text, some.first, some.last, some.cut) == ("two\nthree\n", 2, 3, False)
    short = await files.read_text("a", limit=5)
    assert (short.text, short.last, short.cut) == ("one\nt", 2, True)
    (root / "b").write_bytes(b"\x00\x01")
    assert (await files.read_text("b")).binary


@pytest.mark.parametrize(
    ("sample", "binary"),
    [(b"", False), ("grün".encode(), False), (b"a\0b", True), (b"\xff\xfe", True), ("€".encode()[:2], False)],
)
def test_what_is_binary(sample: bytes, binary: bool) -> None:
    assert is_binary(sample) is binary


async def test_a_folder_and_a_pipe_are_no_files(files: Files, root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    with pytest.raises(BadRequest):
        await files.read("folder")
    with pytest.raises(Forbidden):
        await files.read("pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(BadRequest):
            await files.write(name, b"x")
    with pytest.raises(NotFound):
        await files.read("missing")


async def test_a_write_keeps_the_mode_and_leaves_nothing_behind(files: Files, root: Path) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    status = await files.write("run.sh", b"new")
    assert (root / "run.sh").read_text() == "new"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750
    assert status == await files.stat("run.sh")
    assert left_behind(root) == []


async def test_a_write_through_a_link_inside_keeps_the_link(files: Files, root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    await files.write("link", b"new")
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "new"


async def test_writes_and_everything_else_stay_inside(files: Files, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "out").symlink_to(tmp_path)
    (root / "mine").write_text("mine")
    attempts = [
        files.write("out/evil", b""),
        files.write("../evil", b"", parents=True),
        files.mkdir("out/evil"),
        files.mkdir("../evil"),
        files.copy("out/secret", "stolen"),
        files.copy("mine", "out/evil"),
        files.move("mine", "../evil"),
        files.move("out/secret", "stolen"),
        files.delete("out/secret"),
        files.list("out"),
        files.stat("out"),
        files.stat("../secret"),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            await attempt
    assert names(tmp_path) == ["app", "secret"]


async def test_the_end_of_a_write_that_fails_is_the_old_file(
    files: Files, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="space"):
        await files.write("a", b"new")
    assert (root / "a").read_text() == "old"
    assert left_behind(root) == []


async def test_if_match_refuses_what_somebody_else_has_changed(files: Files, root: Path) -> None:
    first = await files.write("a", b"one")
    second = await files.write("a", b"two", if_match=first.etag)
    assert second.etag != first.etag
    with pytest.raises(Conflict):
        await files.write("a", b"three", if_match=first.etag)
    (root / "a").write_text("owt")  # by hand, the same size
    with pytest.raises(Conflict):
        await files.write("a", b"three", if_match=second.etag)
    with pytest.raises(Conflict):
        await files.write("missing", b"", if_match=second.etag)
    assert (root / "a").read_text() == "owt"


async def test_of_many_writers_with_the_same_etag_one_wins(files: Files) -> None:
    first = await files.write("a", b"start")
    tries = [files.write("a", str(number).encode(), if_match=first.etag) for number in range(10)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [Conflict] * 9


async def test_create_only(files: Files, root: Path) -> None:
    tries = [files.write("a", str(number).encode(), create_only=True) for number in range(10)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [AlreadyExists] * 9
    assert left_behind(root) == []


async def test_parents_are_made_only_when_asked(files: Files, root: Path) -> None:
    with pytest.raises(NotFound):
        await files.write("new/deep/a", b"x")
    await files.write("new/deep/a", b"x", parents=True)
    assert (root / "new/deep/a").read_text() == "x"


@pytest.mark.parametrize(
    ("mode", "position", "result"),
    [
        ("truncate", 0, b"NEW"),
        ("truncate", 3, b"012NEW"),
        ("append", 0, b"0123456789NEW"),
        ("append", 2, b"01234567NEW89"),
        ("insert", 0, b"NEW0123456789"),
        ("insert", 4, b"0123NEW456789"),
    ],
)
async def test_where_data_goes(files: Files, root: Path, mode: Mode, position: int, result: bytes) -> None:
    (root / "a").write_bytes(b"0123456789")
    await files.write("a", b"NEW", mode=mode, position=position)
    assert (root / "a").read_bytes() == result
    with pytest.raises(BadRequest):
        await files.write("a", b"NEW", mode=mode, position=100)


async def test_no_append_is_lost(files: Files, root: Path) -> None:
    lines = [f"{number}\n".encode() for number in range(40)]
    await asyncio.gather(*(files.write("log", line, mode="append") for line in lines))
    assert sorted((root / "log").read_bytes().splitlines(keepends=True)) == sorted(lines)


async def test_a_write_over_the_limit(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITE_MAX", 10)
    await files.write("a", b"x" * 10)
    for mode in ("truncate", "append"):
        with pytest.raises(TooLarge):
            await files.write("a", b"x" * 11, mode=mode)


async def test_listing(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "b.txt").write_text("")
    (root / "a").mkdir()
    (root / "in").symlink_to("a")
    (root / "out").symlink_to("/etc")
    os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT))  # a name that is no text
    assert (await files.list()).entries == [
        DirectoryEntry("a", "directory", "directory"),
        DirectoryEntry("b.txt", "file", "file"),
        DirectoryEntry("in", "symlink", "directory"),
        DirectoryEntry("out", "symlink", None),
    ]
    monkeypatch.setattr(module, "LIST_MAX", 2)
    assert (await files.list()).cut
    with pytest.raises(BadRequest):
        await files.list("b.txt")


async def test_stat_follows_or_not(files: Files, root: Path) -> None:
    (root / "a.json").write_text("{}")
    (root / "link").symlink_to("a.json")
    followed = await files.stat("link")
    assert (followed.path, followed.kind, followed.size) == (str(root / "a.json"), "file", 2)
    assert followed.content_type == "application/json"
    itself = await files.stat("link", follow=False)
    assert (itself.path, itself.kind) == (str(root / "link"), "symlink")


async def test_mkdir(files: Files, root: Path) -> None:
    await files.mkdir("a/b/c")
    await files.mkdir("a/b/c")
    assert (root / "a/b/c").is_dir()
    (root / "file").write_text("")
    with pytest.raises(AlreadyExists):
        await files.mkdir("file")


def plant(root: Path) -> None:
    (root / "tree/sub").mkdir(parents=True)
    (root / "tree/a").write_text("a")
    (root / "tree/sub/b").write_text("b")
    (root / "tree/link").symlink_to("/etc/passwd")


async def test_copies_trees_without_following_links(files: Files, root: Path) -> None:
    plant(root)
    await files.copy("tree", "twin")
    assert (root / "twin/sub/b").read_text() == "b"
    assert (root / "twin/link").is_symlink()
    (root / "twin/extra").write_text("")
    await files.copy("tree", "twin")
    assert names(root / "twin") == ["a", "link", "sub"]
    assert left_behind(root) == []


async def test_moves(files: Files, root: Path) -> None:
    plant(root)
    await files.move("tree/a", "tree/sub/b")
    assert (root / "tree/sub/b").read_text() == "a"
    (root / "other").mkdir()
    (root / "other/x").write_text("")
    await files.move("tree", "other")
    assert names(root) == ["other"]
    assert names(root / "other") == ["link", "sub"]


async def test_a_move_to_another_disk_copies(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root)
    rename = os.rename

    def refuse(source: str, target: str, **places: int) -> None:
        if source == "tree":
            raise OSError(18, "Invalid cross-device link")
        rename(source, target, **places)

    monkeypatch.setattr(os, "rename", refuse)
    await files.move("tree", "moved")
    assert (root / "moved/sub/b").read_text() == "b"
    assert not (root / "tree").exists()


@pytest.mark.parametrize("verb", ["copy", "move"])
async def test_what_copies_and_moves_refuse(files: Files, root: Path, verb: str) -> None:
    plant(root)
    (root / "file").write_text("file")
    act = getattr(files, verb)
    refusals: list[tuple[type[PorticoError], str, str]] = [
        (BadRequest, "tree", "tree/sub/inside"),
        (BadRequest, "tree/sub", "tree"),
        (AlreadyExists, "file", "tree"),
        (AlreadyExists, "tree", "file"),
        (Forbidden, ".", "new"),
        (Forbidden, "file", "."),
        (NotFound, "missing", "new"),
        (NotFound, "file", "missing/new"),
    ]
    for error, source, target in refusals:
        with pytest.raises(error):
            await act(source, target)
    with pytest.raises(AlreadyExists):
        await act("file", "tree/a", fail_if_exists=True)
    assert (root / "tree/a").read_text() == "a"


async def test_a_copy_has_a_bound(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root)
    monkeypatch.setattr(tree, "COPY_MAX", 4)
    with pytest.raises(TooLarge):
        await files.copy("tree", "twin")
    assert not (root / "twin").exists()
    assert left_behind(root) == []


async def test_deletes(files: Files, root: Path, tmp_path: Path) -> None:
    plant(root)
    with pytest.raises(Conflict):
        await files.delete("tree")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("")
    (root / "tree/out").symlink_to(tmp_path / "kept")
    await files.delete("tree", recursive=True)
    assert names(root) == []
    assert (tmp_path / "kept/file").exists()
    with pytest.raises(NotFound):
        await files.delete("tree")
    with pytest.raises(Forbidden):
        await files.delete(".", recursive=True)


@given(st.binary(max_size=200), st.binary(max_size=50), st.sampled_from(["truncate", "append", "insert"]), st.data())
def test_a_write_at_any_position_is_a_splice(old: bytes, new: bytes, mode: Mode, data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    position = data.draw(st.integers(0, len(old)))
    with TemporaryDirectory() as folder:
        Path(folder, "a").write_bytes(old)
        asyncio.run(Files(Jail([folder])).write("a", new, mode=mode, position=position))
        result = Path(folder, "a").read_bytes()
    at = len(old) - position if mode == "append" else position
    assert result == old[:at] + new + (b"" if mode == "truncate" else old[at:])
