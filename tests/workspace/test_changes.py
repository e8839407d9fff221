"""What changed, by real git: everything is seen, and nothing of the user's is touched."""

import asyncio
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound
from portico.workspace import changes as module
from portico.workspace import git as git_module
from portico.workspace.changes import _INDEXES, Changes
from portico.workspace.git import git
from portico.workspace.process import environment, run
from tests.free import FREE
from tests.workspace.living import gone

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


async def commit(root: Path, message: str = "work") -> None:
    await git(root, "add", "-A")
    await git(root, *IDENTITY, "commit", "-q", "--no-gpg-sign", "-m", message)


@pytest.fixture
async def repository(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    await git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("ignored/\n")
    (root / "kept.txt").write_text("kept\n")
    (root / "src/main.py").write_text("".join(f"line {number}\n" for number in range(20)))
    (root / "old name.txt").write_text("a text that is long enough to be recognised\n" * 5)
    await commit(root)
    return root


async def told(changes: Changes, old: str, new: str) -> dict[str, tuple[str, int, int]]:
    found = await changes.between(old, new)
    return {file.path: (file.kind, file.added, file.removed) for file in found.files}


async def test_everything_that_a_turn_did_is_seen(repository: Path) -> None:
    changes = await Changes.open(repository)
    before = await changes.capture("session/1/before")
    script = """
        echo more >> kept.txt; echo new > new.txt; mkdir -p a/b; echo deep > 'a/b/ü "quoted".txt'
        rm src/main.py; mv 'old name.txt' 'new name.txt'; printf 'a\\0b' > data.bin; mkdir ignored; echo x > ignored/x
    """
    await run(script, policy=FREE, cwd=repository, env=environment())
    after = await changes.capture("session/1/after")
    assert await told(changes, before.tree, after.tree) == {
        'a/b/ü "quoted".txt': ("added", 1, 0),
        "data.bin": ("added", 0, 0),
        "kept.txt": ("modified", 1, 0),
        "new name.txt": ("renamed", 0, 0),
        "new.txt": ("added", 1, 0),
        "src/main.py": ("deleted", 0, 20),
    }
    files = {file.path: file for file in (await changes.between(before.tree, after.tree)).files}
    assert files["data.bin"].binary
    assert files["new name.txt"].old_path == "old name.txt"
    assert await changes.content(files["data.bin"].after) == b"a\0b"
    assert (files["data.bin"].before, files["src/main.py"].after) == ("", "")
    assert await changes.content(files["kept.txt"].before) == b"kept\n"
    assert "+more" in await changes.patch(before.tree, after.tree, "kept.txt")
    assert "new.txt" not in await changes.patch(before.tree, after.tree, "kept.txt")


async def test_turns_and_sessions(repository: Path) -> None:
    changes = await Changes.open(repository)
    trees = [(await changes.capture("s/0")).tree]
    for turn in (1, 2):
        (repository / f"{turn}.txt").write_text("x\n")
        trees.append((await changes.capture(f"s/{turn}")).tree)
    assert list(await told(changes, trees[1], trees[2])) == ["2.txt"]
    assert list(await told(changes, trees[0], trees[2])) == ["1.txt", "2.txt"]
    assert await changes.find("s/1") == trees[1]
    await commit(repository)  # a commit in between changes nothing about what the session did
    assert list(await told(changes, trees[0], (await changes.capture()).tree)) == ["1.txt", "2.txt"]
    assert list(await told(changes, await changes.base(), (await changes.capture()).tree)) == []
    await changes.forget("s")
    assert await changes.find("s/1") is None


def fingerprint(root: Path) -> dict[str, str]:
    """All of .git except objects and our own refs, byte by byte."""
    found: dict[str, str] = {}
    for folder, _, names in os.walk(root / ".git"):
        for name in names:
            path = Path(folder, name)
            inner = path.relative_to(root / ".git").as_posix()
            if not inner.startswith(("objects/", "refs/portico/")):
                found[inner] = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
    return found


async def test_nothing_of_the_users_is_touched(repository: Path) -> None:
    (repository / "kept.txt").write_text("stashed\n")
    await git(repository, *IDENTITY, "stash", "-q")
    (repository / "staged.txt").write_text("staged\n")
    await git(repository, "add", "staged.txt")
    (repository / "staged.txt").write_text("staged and changed\n")
    (repository / "untracked.txt").write_text("untracked\n")
    status = await git(repository, "status", "--porcelain")
    before = fingerprint(repository)
    changes = await Changes.open(repository)
    await changes.between((await changes.capture("s/1")).tree, await changes.base())
    assert fingerprint(repository) == before
    assert await git(repository, "status", "--porcelain") == status
    assert "portico" not in await git(repository, "log", "--all", "--oneline", "--decorate")


async def test_a_change_in_the_same_instant_and_of_the_same_size_is_seen(repository: Path) -> None:
    """Git trusts a file's recorded times if they are older than the index; a copy of it must not look younger."""
    await git(repository, "config", "core.trustctime", "false")
    moment = (1_700_000_000, 1_700_000_000)
    (repository / "kept.txt").write_text("kept\n")
    os.utime(repository / "kept.txt", moment)
    await git(repository, "add", "kept.txt")
    (repository / "kept.txt").write_text("KEPT\n")
    os.utime(repository / "kept.txt", moment)
    os.utime(repository / ".git/index", moment)
    changes = await Changes.open(repository)
    assert await told(changes, "HEAD", (await changes.capture()).tree) == {"kept.txt": ("modified", 1, 1)}


async def test_warnings_of_git_are_no_data(repository: Path) -> None:
    await git(repository, "config", "core.autocrlf", "input")
    await git(repository, "config", "diff.renameLimit", "1")
    changes = await Changes.open(repository)
    before = await changes.capture()
    for number in range(5):
        (repository / f"{number}.txt").write_text(f"{number}\r\n" * 50)
    await run("rm 'old name.txt' kept.txt src/main.py", policy=FREE, cwd=repository, env=environment())
    after = await changes.capture()
    assert len(await told(changes, before.tree, after.tree)) == 8
    assert (await changes.patch(before.tree, after.tree)).startswith("diff --git")


async def test_captures_survive_gits_own_cleaning(repository: Path) -> None:
    changes = await Changes.open(repository)
    (repository / "new.txt").write_text("new\n")
    named = await changes.capture("s/1")
    await git(repository, "reflog", "expire", "--expire=now", "--all")
    await git(repository, "gc", "--prune=now", "-q")
    (repository / "new.txt").unlink()
    now = await changes.capture()
    assert list(await told(changes, named.tree, now.tree)) == ["new.txt"]


async def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    await git(tmp_path, "init", "-q")
    changes = await Changes.open(tmp_path)
    empty = await changes.capture()
    (tmp_path / "first").write_text("x\n")
    assert await told(changes, empty.tree, (await changes.capture()).tree) == {"first": ("added", 1, 0)}
    assert await told(changes, await changes.base(), (await changes.capture()).tree) == {"first": ("added", 1, 0)}


async def test_a_part_of_a_repository_shows_only_itself(repository: Path) -> None:
    changes = await Changes.open(repository / "src")
    before = await changes.capture()
    (repository / "outside.txt").write_text("x\n")
    (repository / "kept.txt").write_text("y\n")
    (repository / "src/inside.txt").write_text("x\n")
    after = await changes.capture()
    assert list(await told(changes, before.tree, after.tree)) == ["inside.txt"]
    assert "outside" not in await changes.patch(await changes.base(), after.tree)


async def test_a_new_folder_of_a_repository(repository: Path) -> None:
    (repository / "fresh").mkdir()
    changes = await Changes.open(repository / "fresh")
    before = await changes.capture()
    (repository / "fresh/a").write_text("x\n")
    assert list(await told(changes, before.tree, (await changes.capture()).tree)) == ["a"]


async def test_large_untracked_files_are_left_out_and_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_MAX", 10)
    (repository / "large").write_bytes(b"x" * 11)
    (repository / "small").write_bytes(b"x" * 10)
    changes = await Changes.open(repository)
    taken = await changes.capture()
    assert taken.left_out == ["large"]
    assert list(await told(changes, await changes.base(), taken.tree)) == ["small"]


async def test_other_repositories_inside_and_odd_names(repository: Path) -> None:
    (repository / "nested").mkdir()
    await git(repository / "nested", "init", "-q")
    (repository / "nested/x").write_text("x")
    (repository / "link").symlink_to("/etc/passwd")
    os.close(os.open(os.fsencode(repository) + b"/\xff", os.O_CREAT))
    changes = await Changes.open(repository)
    taken = await changes.capture()
    assert list(await told(changes, await changes.base(), taken.tree)) == ["link", "\ufffd"]
    files = {file.path: file for file in (await changes.between(await changes.base(), taken.tree)).files}
    assert await changes.content(files["link"].after) == b"/etc/passwd"  # the link, not the file


async def test_settings_of_a_repository_start_no_program(repository: Path) -> None:
    """A repository from a stranger can name programs in its settings; looking at it must not run them."""
    trap = repository.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {repository.parent}/sprung\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.editor", "diff.trap.textconv"):
        await git(repository, "config", name, str(trap))
    for key in ("clean", "smudge", "process"):
        await git(repository, "config", f"filter.trap=x.{key}", str(trap))
    (repository / ".gitattributes").write_text("* diff=trap filter=trap=x\n")
    shutil.copy(trap, repository / ".git/hooks/post-index-change")
    (repository / "kept.txt").write_text("changed\n")
    changes = await Changes.open(repository)
    taken = await changes.capture("s/1")
    await changes.patch(await changes.base(), taken.tree)
    assert not (repository.parent / "sprung").exists()


@pytest.mark.parametrize("how", ["file", "link", "common"])
async def test_somebody_elses_repository_is_not_shown(repository: Path, tmp_path: Path, how: str) -> None:
    """Who may write files could point `.git` at a repository outside, and read its files as differences."""
    mine = tmp_path / "mine"
    mine.mkdir()
    if how == "file":
        (mine / ".git").write_text(f"gitdir: {repository}/.git\n")
    elif how == "link":
        (mine / ".git").symlink_to(repository / ".git")
    else:
        await git(mine, "init", "-q")
        (mine / ".git/commondir").write_text(f"{repository}/.git\n")
    with pytest.raises(Forbidden):
        await Changes.open(mine)


async def test_a_worktree_that_only_says_so_is_not_shown(repository: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "fake").mkdir(parents=True)
    (mine / ".git").write_text(f"gitdir: {mine}/fake\n")
    (mine / "fake/gitdir").write_text(f"{mine}/.git\n")
    (mine / "fake/commondir").write_text(f"{repository}/.git\n")
    (mine / "fake/HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(Forbidden):
        await Changes.open(mine)


async def test_a_submodule_has_its_own_changes(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    await git(outer, "init", "-q")
    await git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "inner")
    changes = await Changes.open(outer / "inner")
    (outer / "inner/new").write_text("x\n")
    assert list(await told(changes, await changes.base(), (await changes.capture()).tree)) == ["new"]


async def test_no_repository_is_a_clear_answer(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="git init"):
        await Changes.open(tmp_path)


async def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="git"):
        await Changes.open(tmp_path)


async def test_names_that_git_could_misread_are_refused(repository: Path) -> None:
    changes = await Changes.open(repository)
    for name in ("../heads/main", "a b", "a..b", "a.lock", "a/", "x~1"):
        with pytest.raises(BadRequest):
            await changes.capture(name)
    for revision in ("--output=x", "a..b", "", "HEAD main"):
        with pytest.raises(BadRequest):
            await changes.between(revision, "HEAD")
    with pytest.raises(BadRequest):
        await changes.content("HEAD:kept.txt")


async def test_what_the_host_was_started_with_leads_git_nowhere_else(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that is started in a hook of git has its variables."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    changes = await Changes.open(repository)
    before = await changes.capture("session/1/before")
    (repository / "kept.txt").write_text("changed\n")
    after = await changes.capture("session/1/after")
    assert await told(changes, before.tree, after.tree) == {"kept.txt": ("modified", 1, 1)}
    assert not (tmp_path / "elsewhere").exists()


async def test_git_is_alone_in_its_group_and_ends_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the host does not reach it, and one that hangs leaves nothing behind."""
    program, pids = tmp_path / "git", tmp_path / "pids"
    program.write_text(f"#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat > {pids}\nsleep 1000 & echo $$ $! >> {pids}\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found: list[int] = []
    for seconds in (0.5, 5, 50):  # longer where the machine is so busy that it has not begun
        monkeypatch.setattr(git_module, "GIT_SECONDS", seconds)
        with pytest.raises(Conflict, match="took longer"):
            await asyncio.to_thread(git_module.plumbing, tmp_path, "status")
        found = [int(each) for each in pids.read_text().split()] if pids.exists() else []
        if len(found) == 3:
            break
    group, process, sleeper = found
    assert group == process
    await gone(sleeper)


SHAPES: dict[str, str] = {
    "a file becomes a folder": "rm a.txt; mkdir a.txt; echo x > a.txt/b",
    "a folder becomes a file": "rm -r d; echo x > d",
    "a file becomes a link": "rm a.txt; ln -s d/b.txt a.txt",
    "a broken link": "ln -s nowhere broken",
    "the executable bit": "chmod +x a.txt",
    "removed, and added again under git": "git rm -q a.txt; echo other > a.txt",
    "staged and changed again": "echo 1 > a.txt; git add a.txt; echo 2 > a.txt",
    "removed from git only": "git rm -q --cached a.txt",
    "intent to add": "echo n > n.txt; git add -N n.txt",
    "a conflict": "git checkout -q -b o; echo o > a.txt; git commit -qam o; git checkout -q main; echo m > a.txt;"
    " git commit -qam m; git merge -q o || true",
    "ignored later": "echo x > build.log; : capture; echo '*.log' > .gitignore",
    "ignored by the repository's own list": "echo '*.tmp' >> .git/info/exclude; echo x > x.tmp",
    "another branch": "git checkout -q -b other; echo y > y.txt; git add y.txt; git commit -qm y; git checkout -q main",
    "odd names": "echo 1 > ' lead'; echo 2 > 'tab\there'; echo 3 > -- '-dash'; echo 4 > 'ünï'",
    "a new repository inside": "git init -q inner; echo x > inner/x",
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_capture_from_the_last_one_is_a_capture_from_scratch(repository: Path, shape: str) -> None:
    """The kept index is a shortcut: it must never show another tree than git add would."""
    calm = environment(
        GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@b.c", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@b.c"
    )
    await run(
        "mkdir d; echo a > a.txt; echo b > d/b.txt; git add -A; git commit -qm two",
        policy=FREE,
        cwd=repository,
        env=calm,
    )
    changes = await Changes.open(repository)
    await changes.capture()
    for step in SHAPES[shape].split("; : capture; "):
        await run(step, policy=FREE, cwd=repository, env=calm)
        warm = (await changes.capture()).tree
        again = (await changes.capture()).tree
        _INDEXES.clear()
        assert warm == again == (await changes.capture()).tree
    index = {"GIT_INDEX_FILE": str(repository.parent / "scratch")}
    shutil.copy2(repository / ".git/index", repository.parent / "scratch")
    await run("git add -A .", policy=FREE, cwd=repository, env=calm | index)
    tree = (await git(repository, "write-tree", env=index)).strip()
    inner = [each.path for each in (await changes.between(warm, tree)).files if not each.path.startswith("inner")]
    assert inner == []
