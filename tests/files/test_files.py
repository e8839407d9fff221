"""Files that people and editors change through the host: inside the jail, on record, and never what git would run."""

import base64
from pathlib import Path
from typing import Any

import pytest

from portico.features.files.commands import CopyFile, DeleteFile, MakeFolder, MoveFile, WriteFile
from portico.features.folders.commands import AddFolder, RemoveFolder
from portico.features.jobs import commands as jc
from portico.kernel import commands as c
from portico.kernel.commands import SCOPES, Caller
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.kernel.events import Audited
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.jail import closed
from tests.host.plays import idle

ADA = Caller("t1", "ada", frozenset(SCOPES))
WRITER = Caller("t2", "writer", frozenset({"files"}))


@pytest.fixture
async def host(open_host: HostOpener, tmp_path: Path) -> Host:
    host = await open_host(PlayAgent(idle))
    (tmp_path / "w").mkdir()
    host.workspaces[:] = [tmp_path / "w"]
    return host


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "w"


@pytest.mark.parametrize(
    ("before", "fields", "after"),
    [
        (None, {"data": "new"}, b"new"),
        (b"old text", {"data": "new"}, b"new"),
        (b"old", {"data": "er", "mode": "append"}, b"older"),
        (b"0123456789", {"data": "xx", "mode": "insert", "position": 3}, b"012xx3456789"),
        (None, {"data": base64.b64encode(b"\0\xff").decode(), "encoding": "base64"}, b"\0\xff"),
        (None, {"data": "ä€😀"}, "ä€😀".encode()),
        (None, {"data": "", "create_only": True}, b""),
    ],
    ids=["a new file", "in place of the old", "behind it", "in the middle", "bytes", "any text", "nothing"],
)
async def test_a_file_is_written(
    host: Host, folder: Path, before: bytes | None, fields: dict[str, Any], after: bytes
) -> None:
    file = folder / "a.txt"
    if before is not None:
        file.write_bytes(before)
    await host.do(WriteFile(path=str(file), **fields), ADA)
    assert file.read_bytes() == after


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"data": "not base64!", "encoding": "base64"}, BadRequest, "data"),
        ({"data": "ä", "encoding": "base64"}, BadRequest, "data"),
        ({"data": "x", "if_match": "another"}, Conflict, None),
        ({"data": "x", "create_only": True}, Conflict, None),
    ],
    ids=["no base64", "no ASCII", "it has changed meanwhile", "it is there already"],
)
async def test_a_file_is_left_as_it_is(
    host: Host, folder: Path, fields: dict[str, Any], error: type[PorticoError], field: str | None
) -> None:
    (folder / "a.txt").write_text("old")
    with pytest.raises(error) as refused:
        await host.do(WriteFile(path=str(folder / "a.txt"), **fields), ADA)
    assert (folder / "a.txt").read_text() == "old"
    if field is not None:
        assert refused.value.field == field


def commands(path: str, inside: str) -> list[c.Command]:
    return [
        WriteFile(path=path, data="x"),
        CopyFile(source=inside, destination=path),
        MoveFile(source=inside, destination=path),
        DeleteFile(path=path),
        MakeFolder(path=f"{path}/new"),
    ]


@pytest.mark.parametrize("number", range(5), ids=["write", "copy", "move", "delete", "make a folder"])
@pytest.mark.parametrize("way", ["outside", "up", "link"])
async def test_nothing_leads_out_of_the_workspaces(host: Host, folder: Path, number: int, way: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("keep")
    (folder / "a.txt").write_text("a")
    (folder / "link").symlink_to(outside)
    paths = {"outside": outside / "secret", "up": folder / "../outside/secret", "link": folder / "link/secret"}
    with pytest.raises((Forbidden, NotFound)):
        await host.do(commands(str(paths[way]), str(folder / "a.txt"))[number], ADA)
    assert (outside / "secret").read_text() == "keep"
    assert [each.name for each in outside.iterdir()] == ["secret"]


@pytest.mark.parametrize("number", range(5), ids=["write", "copy", "move", "delete", "make a folder"])
@pytest.mark.parametrize("name", [".git/config", ".GIT/hooks/pre-commit", "sub/.git/x"])
async def test_what_git_would_run_needs_the_scope_of_terminals(
    host: Host, folder: Path, number: int, name: str
) -> None:
    """What stands there names programs: to write it is to run a command."""
    (folder / "a.txt").write_text("a")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("old")
    with pytest.raises(Forbidden, match="needs the scope 'terminal' too"):
        await host.do(commands(str(folder / name), str(folder / "a.txt"))[number], WRITER)
    assert (folder / name).read_text() == "old"
    await host.do(WriteFile(path=str(folder / name), data="new"), ADA)
    assert (folder / name).read_text() == "new"


async def test_a_file_moved_out_of_there_counts_too(host: Host, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("old")
    with pytest.raises(Forbidden):
        await host.do(MoveFile(source=str(folder / ".git/config"), destination=str(folder / "x")), WRITER)


async def test_a_link_into_it_is_seen_through(host: Host, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("old")
    (folder / "harmless.txt").symlink_to(folder / ".git/config")
    with pytest.raises(Forbidden):
        await host.do(WriteFile(path=str(folder / "harmless.txt"), data="x"), WRITER)
    assert (folder / ".git/config").read_text() == "old"


async def test_what_people_do_to_files_is_on_record(host: Host, folder: Path) -> None:
    a, b, d, sub = (str(folder / name) for name in ("a", "b", "d", "sub"))
    for command in (
        WriteFile(path=a, data="x"),
        CopyFile(source=a, destination=b),
        MoveFile(source=b, destination=d),
        DeleteFile(path=d),
        MakeFolder(path=sub),
    ):
        await host.do(command, ADA)
    events = [record.event for record in await host.log.read("host", 0)]
    found = [
        (each.action, each.detail["path"])
        for each in events
        if isinstance(each, Audited) and each.action.startswith(("file.", "folder."))
    ]
    done = [("file.written", a), ("file.copied", b), ("file.moved", d), ("file.deleted", d), ("folder.made", sub)]
    assert found == done


@pytest.mark.parametrize("fail", [False, True])
async def test_what_is_there_is_replaced_unless_that_is_not_wanted(host: Host, folder: Path, fail: bool) -> None:
    (folder / "a").write_text("new")
    (folder / "b").write_text("old")
    command = CopyFile(source=str(folder / "a"), destination=str(folder / "b"), fail_if_exists=fail)
    if fail:
        with pytest.raises(Conflict):
            await host.do(command, ADA)
    else:
        await host.do(command, ADA)
    assert (folder / "b").read_text() == ("old" if fail else "new")


@pytest.mark.parametrize("recursive", [False, True])
async def test_a_full_folder_goes_only_when_that_is_said(host: Host, folder: Path, recursive: bool) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a").write_text("a")
    command = DeleteFile(path=str(folder / "sub"), recursive=recursive)
    if recursive:
        await host.do(command, ADA)
    else:
        with pytest.raises(PorticoError):
            await host.do(command, ADA)
    assert (folder / "sub").exists() is not recursive


async def test_without_the_scope_nothing_is_written(host: Host, folder: Path) -> None:
    reader = Caller("t3", "reader", frozenset({"read", "drive"}))
    with pytest.raises(Forbidden):
        await host.do(WriteFile(path=str(folder / "a"), data="x"), reader)
    assert not (folder / "a").exists()


@pytest.mark.parametrize("name", ["home", "link", "home/", "home/../home"])
@pytest.mark.parametrize("kind", ["session", "folders", "add", "replace", "job"])
async def test_nothing_works_in_the_hosts_own_folder(host: Host, tmp_path: Path, name: str, kind: str) -> None:
    """Bug: a session could be started in the folder with the tokens and the log."""
    (tmp_path / "home" / "inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "home")
    session = await host.do(c.StartSession(agent="play", cwd=str(tmp_path / "w")), ADA)
    home = f"{tmp_path}/{name}"
    command: c.Command = {
        "session": c.StartSession(agent="play", cwd=home),
        "folders": c.StartSession(agent="play", folders=[home]),
        "add": AddFolder(session=session.id, folder=home),
        "replace": RemoveFolder(session=session.id, folder=str(tmp_path / "w"), replacement=home),
        "job": jc.StartJob(job="x", cwd=home),
    }[kind]
    with closed(tmp_path / "home"), pytest.raises(BadRequest, match="the host's own folder"):
        await host.do(command, ADA)
    with closed(tmp_path / "home"):  # a project there is one, as for the jail of files
        await host.do(c.StartSession(agent="play", cwd=str(tmp_path / "home" / "inside")), ADA)
