"""Attempts to get out of the jail. Each test is an attack that has worked on somebody."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, Forbidden, PorticoError
from portico.workspace import jail as module
from portico.workspace.files import Files
from portico.workspace.jail import LINKS_MAX, PATH_MAX, Jail, closed, is_closed
from portico.workspace.search import find, search

SECRET = "the secret"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print()")
    return folder


@pytest.fixture
def jail(root: Path) -> Jail:
    return Jail([root])


def read(jail: Jail, path: str | Path) -> str:
    with os.fdopen(jail.open(path)) as file:
        return file.read()


def test_reads_by_relative_absolute_and_winding_paths(jail: Jail, root: Path) -> None:
    paths: list[str | Path] = [
        "src/main.py",
        root / "src/main.py",
        "./src//../src/./main.py",
        f"{root}/../app/src/main.py",
    ]
    assert [read(jail, path) for path in paths] == ["print()"] * 4


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "src/../../outside/secret",
        "../../../../../../../../etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/",
        "..",
        "../app-evil/secret",
        "../APP/secret",
    ],
)
def test_paths_that_lead_out_are_refused(jail: Jail, outside: Path, path: str) -> None:
    for sibling in ("app-evil", "APP"):
        (outside.parent / sibling).mkdir()
        (outside.parent / sibling / "secret").write_text(SECRET)
    with pytest.raises(Forbidden):
        jail.open(path)
    with pytest.raises(Forbidden):
        jail.resolve(path)


def test_a_sibling_that_shares_the_prefix_is_outside(jail: Jail, root: Path) -> None:
    evil = Path(f"{root}-evil")
    evil.mkdir()
    (evil / "secret").write_text(SECRET)
    with pytest.raises(Forbidden):
        jail.open(evil / "secret")


def test_another_case_of_the_root_is_another_folder(jail: Jail, root: Path) -> None:
    with pytest.raises(Forbidden):
        jail.open(str(root).upper() + "/src/main.py")


@pytest.mark.parametrize(
    "name", ["src/\0main.py", "\0", "src/main.py\0.txt", "\ud800", "a" * (PATH_MAX + 1), "a" * 300]
)
def test_names_that_cannot_be_are_bad_requests(jail: Jail, name: str) -> None:
    with pytest.raises(BadRequest):
        jail.open(name)


@pytest.mark.parametrize("target", ["../outside", "{outside}", "src/../../outside", "/proc/self/cwd/..", "/"])
def test_links_out_are_refused_at_the_end_and_on_the_way(jail: Jail, root: Path, outside: Path, target: str) -> None:
    (root / "link").symlink_to(target.format(outside=outside))
    for path in ("link", "link/secret", "link/new"):
        with pytest.raises(Forbidden), jail.spot(path):
            pass


def test_a_link_to_a_link_out_is_refused(jail: Jail, root: Path, outside: Path) -> None:
    (root / "first").symlink_to("src/second")
    (root / "src/second").symlink_to(outside / "secret")
    with pytest.raises(Forbidden):
        jail.open("first")


def test_links_inside_are_followed(jail: Jail, root: Path) -> None:
    (root / "relative").symlink_to("src/main.py")
    (root / "absolute").symlink_to(root / "src")
    (root / "src/up").symlink_to("..")
    assert read(jail, "relative") == read(jail, "absolute/main.py") == read(jail, "src/up/src/main.py") == "print()"
    assert jail.resolve("src/up/absolute/main.py") == root / "src/main.py"


def test_a_link_itself_can_be_meant(jail: Jail, root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    assert jail.resolve("link", follow=False) == root / "link"


def test_links_in_a_circle_end(jail: Jail, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(Forbidden):
        jail.open("a")


def test_a_chain_of_links_has_a_bound(jail: Jail, root: Path) -> None:
    (root / "0").symlink_to("src")
    for number in range(1, LINKS_MAX + 1):
        (root / str(number)).symlink_to(str(number - 1))
    assert jail.resolve(str(LINKS_MAX - 1)) == root / "src"
    with pytest.raises(Forbidden):
        jail.resolve(str(LINKS_MAX))


def test_two_roots_and_a_link_between_them(tmp_path: Path, root: Path, outside: Path) -> None:
    both = Jail([root, outside])
    (root / "link").symlink_to("../outside")
    assert read(both, "link/secret") == read(both, outside / "secret") == read(both, "../outside/secret") == SECRET
    assert both.relative(outside / "secret") == str(outside / "secret")
    assert both.relative(root / "src") == "src"
    with pytest.raises(Forbidden):
        both.open(tmp_path)


def test_the_kernels_folders_are_outside_even_of_everything() -> None:
    everything = Jail(["/"])
    for path in (
        "/proc/self/environ",
        "/proc/1/environ",
        "proc/self/root/etc",
        "/sys/kernel",
        "/dev/null",
        "/etc/../proc",
    ):
        with pytest.raises(Forbidden), everything.spot(path):
            pass
    with pytest.raises(Forbidden):
        Jail(["/proc/self"])


def test_a_link_into_proc_is_refused_in_a_jail_of_everything(root: Path) -> None:
    (root / "env").symlink_to("/proc/self/environ")
    with pytest.raises(Forbidden):
        Jail(["/"]).open(root / "env")


def test_pipes_and_sockets_are_refused_without_waiting(jail: Jail, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(Forbidden):
        jail.open("pipe")


def test_a_link_swapped_in_after_the_check_is_not_followed(jail: Jail, root: Path, outside: Path) -> None:
    """The classic race: the name is checked while it is a file, and is a link when it is opened."""
    from portico.workspace.jail import open_at

    with jail.spot("src/main.py") as spot:
        (root / "src/main.py").unlink()
        (root / "src/main.py").symlink_to(outside / "secret")
        with pytest.raises(OSError, match="symbolic links"):
            open_at(spot)


def test_a_folder_swapped_for_a_link_after_the_check_changes_nothing(jail: Jail, root: Path, outside: Path) -> None:
    with jail.spot("src/secret") as spot:
        (root / "src").rename(root / "moved")
        (root / "src").symlink_to(outside)
        with pytest.raises(FileNotFoundError):
            os.open(spot.name, os.O_RDONLY, dir_fd=spot.folder)


def test_a_folder_swapped_for_a_link_on_the_way_is_not_entered(
    jail: Jail, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a folder and its opening."""
    look = module._Walk.look

    def swapped(walk: module._Walk, name: str) -> os.stat_result | None:
        found = look(walk, name)
        if name == "src" and not (root / "src").is_symlink():
            (root / "src").rename(root / "moved")
            (root / "src").symlink_to(outside)
        return found

    monkeypatch.setattr(module._Walk, "look", swapped)
    with pytest.raises(PorticoError):
        read(jail, "src/secret")


def test_somebody_who_swaps_all_the_time_never_wins(jail: Jail, root: Path, outside: Path) -> None:
    stop = threading.Event()
    (root / "link").symlink_to(outside)
    (root / "real").mkdir()
    (root / "real/secret").write_text("harmless")

    def swap() -> None:
        while not stop.is_set():
            for name in ("link", "real"):
                os.rename(root / name, root / "door")
                os.rename(root / "door", root / name)

    attacker = threading.Thread(target=swap)
    attacker.start()
    seen: set[str] = set()
    try:
        for _ in range(2000):
            try:
                seen.add(read(jail, "door/secret"))
            except PorticoError as refused:
                seen.add(type(refused).__name__)
    finally:
        stop.set()
        attacker.join()
    assert SECRET not in seen


def test_descriptors_are_closed(jail: Jail, root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    before = len(os.listdir("/proc/self/fd"))
    for path in ("src/main.py", "link/secret", "missing/x", "src/../../x", "src/.."):
        try:
            os.close(jail.open(path))
        except PorticoError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


def test_resolve_knows_what_does_not_exist_yet(jail: Jail, root: Path) -> None:
    (root / "dangling").symlink_to("src/later")
    assert jail.resolve("new/deep/file") == root / "new/deep/file"
    assert jail.resolve("dangling/x") == root / "src/later/x"
    with pytest.raises(PorticoError):
        jail.resolve("new/../../outside")


NAMES = st.sampled_from(["..", ".", "", "a", "b", "in", "out", "up", "loop", "file", "app", "app-evil", "secret", "A"])


@pytest.fixture(scope="module")
def maze() -> Iterator[Path]:
    with TemporaryDirectory() as top:
        place = Path(top).resolve()
        root = place / "app"
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "file").write_text("fine")
        (root / "a" / "b" / "file").write_text("fine")
        for secret in ("secret", "app-evil/secret", "A/secret"):
            (place / secret).parent.mkdir(exist_ok=True)
            (place / secret).write_text(SECRET)
        links = {"in": "a/b", "out": "../app-evil", "up": "..", "loop": "loop", "a/up": "..", "a/b/out": str(place)}
        for name, target in links.items():
            (root / name).symlink_to(target)
        yield root


@settings(max_examples=400, deadline=None)
@given(parts=st.lists(NAMES, max_size=12), absolute=st.booleans())
def test_no_path_of_the_maze_reads_a_secret(maze: Path, parts: list[str], absolute: bool) -> None:
    """Any walk through folders, links in, out, up and around ends inside or in an error."""
    path = "/".join([str(maze), *parts] if absolute else parts)
    jail = Jail([maze])
    try:
        with jail.spot(path) as spot:
            inside = spot.path
            real = Path(f"/proc/self/fd/{spot.folder}").readlink()
    except PorticoError:
        return
    assert inside.is_relative_to(maze)
    assert real.is_relative_to(maze)
    if os.path.exists(os.path.join(maze, path)):
        assert inside == Path(os.path.realpath(os.path.join(maze, path)))


@settings(max_examples=300, deadline=None)
@given(path=st.text(max_size=40))
def test_any_text_is_answered(maze: Path, path: str) -> None:
    with suppress(PorticoError):
        assert Jail([maze]).resolve(path).is_relative_to(maze)


async def test_the_hosts_own_folder_is_closed(jail: Jail, root: Path) -> None:
    """It lies in the project when somebody works in his home folder; its tokens are files there."""
    home = root / "data" / "host"
    (home / "project").mkdir(parents=True)
    for each in (home / "token", home / "project" / "mine"):
        each.write_text(SECRET)
    (root / "link").symlink_to(home)
    (root / "src" / "token").symlink_to(home / "token")
    files = Files(jail)
    with closed(root / "link"):
        for path in ("data/host/token", "data/host", "link/token", "src/token", "data/host/new", "src/../link"):
            with pytest.raises(Forbidden, match="belongs to the host"):
                jail.open(path)
        for within in (Jail([home]), Jail([root / "data"]), Jail(["/"])):
            with pytest.raises(Forbidden, match="belongs to the host"):
                within.open(home / "token")
        for path in ("data", "data/host"):
            with pytest.raises(Forbidden, match="host"):
                await files.copy(path, "stolen")
            with pytest.raises(Forbidden, match="host"):
                await files.move(path, "stolen")
            with pytest.raises(Forbidden, match="host"):
                await files.delete(path, recursive=True)
        assert not [each for each in (await find(jail)).paths if "host" in each]
        assert not (await search(jail, SECRET)).matches
        assert read(Jail([home / "project"]), "mine") == SECRET, "a project in there is one all the same"
    assert read(jail, "link/token") == SECRET
    assert not is_closed(home)
