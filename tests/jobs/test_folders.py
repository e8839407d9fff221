"""Worktrees of jobs by real git: made, committed, merged, removed, and found again after a crash."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import folders
from portico.features.jobs.folders import (
    close_folder,
    commit_folder,
    folder_changes,
    folder_key,
    forget_folder,
    merge_folder,
    open_folder,
    restore_folder,
    unresolved,
)
from portico.kernel.errors import BadRequest, Conflict
from portico.workspace.git import git
from portico.workspace.worktree import Worktree

KEY = folder_key("job-1", 1_700_000_000_000)


def write(folder: str, name: str, text: str) -> None:
    Path(folder, name).write_text(text)


def read(folder: str, name: str) -> str:
    return Path(folder, name).read_text()


def exists(folder: str, name: str = "") -> bool:
    return Path(folder, name).exists()


def delete(folder: str, name: str) -> None:
    Path(folder, name).unlink()


@pytest.fixture(autouse=True)
def no_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git without a name of the user, as in a container."""
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
async def repository(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    await git(root, "init", "-q", "-b", "main")
    (root / "src/a").write_text("a\n")
    (root / "b").write_text("b\n")
    await commit(root, "first")
    return root


async def commit(root: Path, message: str) -> None:
    await git(root, "add", "-A")
    await git(root, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", message)


async def state(root: Path) -> tuple[str, ...]:
    """What a user sees of the own checkout."""
    head = (root / ".git/HEAD").read_text()
    return (await git(root, "status", "--porcelain"), await git(root, "rev-parse", "HEAD"), head, _files(root))


def _files(root: Path) -> str:
    found = [path for path in sorted(root.rglob("*")) if path.is_file() and ".git" not in path.relative_to(root).parts]
    return repr({str(path.relative_to(root)): path.read_bytes() for path in found})


async def nothing(root: Path) -> None: ...


async def dirty(root: Path) -> None:
    (root / "b").write_text("not committed\n")
    (root / "untracked").write_text("x")
    (root / "staged").write_text("x")
    await git(root, "add", "staged")
    await git(root, "rm", "-q", "--cached", "src/a")


async def on_a_branch(root: Path) -> None:
    await git(root, "checkout", "-qb", "feature/x")


async def detached(root: Path) -> None:
    await git(root, "checkout", "-q", "--detach")


async def with_hooks(root: Path) -> None:
    """Each hook fails and leaves a trace."""
    names = ("pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "pre-merge-commit")
    for name in names:
        (root / f".git/hooks/{name}").write_text(f"#!/bin/sh\ntouch {root}/ran-{name}\nexit 1\n")
        (root / f".git/hooks/{name}").chmod(0o755)


async def signing(root: Path) -> None:
    await git(root, "config", "commit.gpgSign", "true")
    await git(root, "config", "gpg.program", "/bin/false")


async def linked(root: Path) -> None:
    """The checkout has other worktrees."""
    await git(root, "worktree", "add", "-q", "-b", "other", str(root.parent / "other"))


CHECKOUTS = [nothing, dirty, on_a_branch, detached, with_hooks, signing, linked]


@pytest.mark.parametrize("below", ["", "src", "src/new"])
@pytest.mark.parametrize("prepare", CHECKOUTS, ids=lambda each: each.__name__)
async def test_a_run_leaves_a_branch_and_the_checkout_as_it_was(
    repository: Path, prepare: Callable[[Path], Awaitable[None]], below: str
) -> None:
    await prepare(repository)
    (repository / below).mkdir(exist_ok=True)
    before = await state(repository)
    tree = await open_folder(repository / below, KEY, "deps/today")
    assert (tree.branch, exists(tree.folder)) == ("deps/today", True)
    write(tree.folder, "made", "by the agent\n")
    delete(tree.path, "src/a")
    made = await commit_folder(tree, "Step one")
    assert made == await commit_folder(tree, "Nothing more")
    assert not await git(Path(tree.path), "status", "--porcelain")
    assert await close_folder(tree)
    assert not exists(tree.path)
    assert await state(repository) == before
    shown = await git(repository, "show", "--format=%an <%ae> %s", "--name-status", "deps/today")
    lines = [line for line in shown.splitlines() if line]
    added = f"A\t{below}/made" if below else "A\tmade"
    assert (lines[0], sorted(lines[1:])) == ("Portico <portico@localhost> Step one", sorted([added, "D\tsrc/a"]))


async def test_the_name_of_the_user_is_used_where_there_is_one(repository: Path) -> None:
    await git(repository, "config", "user.name", "Ann")
    await git(repository, "config", "user.email", "ann@example.org")
    tree = await open_folder(repository, KEY, "x")
    write(tree.folder, "new", "x")
    await commit_folder(tree, "Step")
    assert (await git(repository, "log", "-1", "--format=%an %ce", "x")).strip() == "Ann ann@example.org"


async def no_repository(root: Path) -> Path:
    (root.parent / "plain").mkdir()
    return root.parent / "plain"


async def no_commit(root: Path) -> Path:
    (root.parent / "empty").mkdir()
    await git(root.parent / "empty", "init", "-q")
    return root.parent / "empty"


@pytest.mark.parametrize(("make", "words"), [(no_repository, "Run `git init` and commit"), (no_commit, "git commit")])
async def test_a_folder_without_commits_is_refused(
    repository: Path, make: Callable[[Path], Awaitable[Path]], words: str
) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        await open_folder(await make(repository), KEY, "x")
    assert refused.value.field == "folder"


@pytest.mark.parametrize("branch", ["", "a b", "a..b", "-x", "--all", "a~1", "x.lock", "/x", "@{-1}", "a:b", "a\nb"])
async def test_a_name_that_no_branch_can_have_is_refused(repository: Path, branch: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await open_folder(repository, KEY, branch)
    assert refused.value.field == "branch"
    assert (await git(repository, "branch", "--format=%(refname:short)")).split() == ["main"]


async def test_a_branch_of_another_run_gets_a_number(repository: Path) -> None:
    trees = [await open_folder(repository, folder_key("job", time), "deps") for time in range(3)]
    assert [tree.branch for tree in trees] == ["deps", "deps-2", "deps-3"]
    with pytest.raises(BadRequest, match="'refs/heads/deps' exists"):
        await open_folder(repository, folder_key("job", 9), "deps/x")


async def test_files_that_are_not_ours_are_not_deleted(repository: Path) -> None:
    place = repository.parent / "app.worktrees" / KEY
    place.mkdir(parents=True)
    (place / "mine").write_text("x")
    with pytest.raises(Conflict, match="not empty"):
        await open_folder(repository, KEY, "x")
    assert (place / "mine").read_text() == "x"


async def test_a_branch_that_the_user_has_checked_out_is_left_to_them(repository: Path) -> None:
    tree = await open_folder(repository, KEY, "x")
    write(tree.folder, "new", "x")
    await commit_folder(tree, "Step")
    await close_folder(tree)
    await git(repository, "checkout", "-q", "x")
    with pytest.raises(Conflict, match="Switch to another branch there"):
        await open_folder(repository, KEY, "x")
    await git(repository, "checkout", "-q", "main")
    assert exists((await open_folder(repository, KEY, "x")).folder, "new")


@pytest.mark.parametrize("leave", ["detach", "other branch", "unrelated", "own commits", "reset"])
async def test_an_agent_that_leaves_the_branch_changes_nothing_about_the_result(repository: Path, leave: str) -> None:
    tree = await open_folder(repository, KEY, "x")
    folder = Path(tree.folder)
    (folder / "kept").write_text("x")
    await commit_folder(tree, "First")
    steps: dict[str, list[tuple[str, ...]]] = {
        "detach": [("checkout", "-q", "--detach")],
        "other branch": [("checkout", "-q", "-b", "mine")],
        "unrelated": [("checkout", "-q", "--orphan", "none"), ("rm", "-rq", "--cached", ".")],
        "own commits": [],
        "reset": [("reset", "-q", "--soft", "HEAD~1")],
    }
    for step in steps[leave]:
        await git(folder, *step)
    (folder / "new").write_text("x")
    if leave != "unrelated":
        await commit(folder, "by the agent")
    tip = await commit_folder(tree, "Second")
    assert (await git(repository, "rev-parse", "x")).strip() == tip
    listed = await git(repository, "ls-tree", "-r", "--name-only", "x")
    assert listed.split() == ["b", "kept", "new", "src/a"]
    assert (await git(folder, "symbolic-ref", "HEAD")).strip() == "refs/heads/x"


# -- changes of one step -------------------------------------------------------------------------------------------


async def test_the_changes_of_a_step_are_its_own(repository: Path) -> None:
    """Committed by the agent or not, and whatever others do in their folders and in the checkout."""
    one = await open_folder(repository / "src", folder_key("job", 1, "one"), "one")
    two = await open_folder(repository, folder_key("job", 1, "two"), "two")
    start = await commit_folder(one, "")
    write(one.folder, "a", "changed\n")
    await commit(Path(one.path), "by the agent")
    write(one.folder, "new", "1\n2\n")
    write(two.folder, "b", "by another step\n")
    (repository / "src/c").write_text("by the user\n")
    found = {each.path: (each.kind, each.added) for each in (await folder_changes(one, start)).files}
    assert found == {"a": ("modified", 1), "new": ("added", 2)}
    second = await commit_folder(one, "Step")
    assert (await folder_changes(one, second)).files == []


async def test_a_step_that_runs_again_begins_with_its_commit(repository: Path) -> None:
    (repository / ".gitignore").write_text("cache\n")
    await commit(repository, "ignore")
    tree = await open_folder(repository, KEY, "x")
    start = await commit_folder(tree, "")
    for name in ("b", "cache", "new"):
        write(tree.folder, name, "half done")
    await restore_folder(tree, start)
    assert (read(tree.folder, "b"), exists(tree.folder, "new")) == ("b\n", False)
    assert exists(tree.folder, "cache")


# -- merge ---------------------------------------------------------------------------------------------------------


async def items(repository: Path, *contents: dict[str, str]) -> tuple[Worktree, list[Worktree]]:
    """A run, and items that wrote these files at the same time."""
    parent = await open_folder(repository, KEY, "result")
    base = await commit_folder(parent, "")
    children = []
    for number, files in enumerate(contents):
        key = folder_key("job-1", 1_700_000_000_000, "update", number)
        child = await open_folder(repository, key, f"portico/{key}", base=base)
        for name, text in files.items():
            write(child.folder, name, text)
        await commit_folder(child, f"Item {number}")
        children.append(child)
    return parent, children


async def test_items_are_merged_in_order_and_their_branches_deleted(repository: Path) -> None:
    before = await state(repository)
    parent, children = await items(repository, {"one": "1"}, {"two": "2"}, {}, {"b": "changed\n"})
    for number, child in enumerate(children):
        merged = await merge_folder(parent, child, f"Merge item {number}")
        assert merged.conflict is None
        assert not await close_folder(child, into=parent)
    listed = await git(repository, "log", "--first-parent", "--reverse", "--format=%s", "main..result")
    assert listed.splitlines() == ["Merge item 0", "Merge item 1", "Merge item 3"]
    assert sorted(os.listdir(parent.folder)) == [".git", "b", "one", "src", "two"]
    branches = (await git(repository, "branch", "--format=%(refname:short)")).split()
    assert (branches, await state(repository)) == (["main", "result"], before)


CONFLICTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "both changed": ({"b": "one\n"}, {"b": "two\n"}),
    "both added": ({"new": "one\n"}, {"new": "two\n"}),
}


@pytest.mark.parametrize("case", CONFLICTS)
async def test_a_conflict_is_evidence_and_changes_nothing(repository: Path, case: str) -> None:
    parent, (one, two) = await items(repository, *CONFLICTS[case])
    first = await merge_folder(parent, one, "Merge one")
    second = await merge_folder(parent, two, "Merge two")
    name = next(iter(CONFLICTS[case][0]))
    assert second.conflict is not None
    assert (second.commit, second.conflict.files) == (first.commit, [name])
    assert [part for part in ("<<<<<<<", "one", "two", ">>>>>>>") if part not in second.conflict.text] == []
    assert read(parent.folder, name) == "one\n"
    assert not await git(Path(parent.path), "status", "--porcelain")
    assert await close_folder(two, into=parent), "what is not merged stays"


async def test_an_agent_resolves_a_conflict(repository: Path) -> None:
    parent, (one, two) = await items(repository, {"b": "one\n"}, {"b": "two\n", "more": "2"})
    await merge_folder(parent, one, "Merge one")
    merged = await merge_folder(parent, two, "Merge two", leave=True)
    assert merged.conflict is not None
    assert await unresolved(parent, merged.conflict) == ["b"]
    again = await merge_folder(parent, two, "Merge two", leave=True)  # the host was killed meanwhile
    assert again == merged
    write(parent.folder, "b", "one and two\n")
    assert await unresolved(parent, merged.conflict) == []
    tip = await commit_folder(parent, "Merge two")
    assert len((await git(repository, "rev-list", "--parents", "-1", tip)).split()) == 3
    assert not await close_folder(two, into=parent)


# -- crashes -------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """As `kill -9`: nothing after it runs."""


async def scenario(repository: Path) -> None:
    """What a run does, as it is done again from the start after a crash."""
    parent = await open_folder(repository, KEY, "result")
    base = parent.base
    for number in range(2):
        key = folder_key("job-1", 1_700_000_000_000, number)
        child = await open_folder(repository, key, f"portico/{key}", base=base)
        write(child.folder, f"new-{number}", "x")
        await commit_folder(child, f"Item {number}")
        await merge_folder(parent, child, f"Merge {number}")
        await close_folder(child, into=parent)
    await close_folder(parent)


async def test_a_run_that_is_killed_anywhere_ends_as_one_that_is_not(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [10**6]

    def dying(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def called(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return await real(*args, **kwargs)

        return called

    for name in ("call", "git"):
        monkeypatch.setattr(folders, name, dying(getattr(folders, name)))
    before = await state(repository)
    await scenario(repository)
    calls = 10**6 - left[0]
    assert calls > 40
    for point in range(1, calls, 9):
        await git(repository, "branch", "-q", "-D", "result")
        for path in (repository / ".git/portico-folders").glob("*"):
            path.unlink()
        left[0] = point
        with pytest.raises(Killed):
            await scenario(repository)
        left[0] = 10**6
        await scenario(repository)
        branches = (await git(repository, "branch", "--format=%(refname:short)")).split()
        files = (await git(repository, "ls-tree", "--name-only", "result")).split()
        assert (point, branches, files) == (point, ["main", "result"], ["b", "new-0", "new-1", "src"])
        assert not (repository.parent / "app.worktrees").exists()
    assert await state(repository) == before


@pytest.mark.parametrize("damage", ["half a checkout", "half removed", "locks", "files gone", "git forgot it"])
async def test_what_a_killed_git_leaves_is_repaired(repository: Path, damage: str) -> None:
    tree = await open_folder(repository, KEY, "x")
    write(tree.folder, "done", "x")
    tip = await commit_folder(tree, "Step")
    private = repository / ".git/worktrees" / KEY
    if damage == "half a checkout":
        (private / "locked").write_text("initializing")
        delete(tree.folder, "b")
    elif damage == "half removed":
        record = repository / f".git/portico-folders/{KEY}.json"
        record.write_text(record.read_text().replace("false", "true"))
        delete(tree.folder, "b")
    elif damage == "locks":
        (private / "index.lock").write_text("")
    elif damage == "files gone":
        await asyncio.to_thread(os.system, f"rm -r {tree.path}")
    else:
        await asyncio.to_thread(os.system, f"rm -r {private}")
    assert await open_folder(repository, KEY, "x") == tree
    assert (read(tree.folder, "b"), await commit_folder(tree, "More")) == ("b\n", tip)


async def test_work_that_is_not_committed_survives_a_restart(repository: Path) -> None:
    tree = await open_folder(repository, KEY, "x")
    write(tree.folder, "half", "done")
    assert await open_folder(repository, KEY, "x") == tree
    assert read(tree.folder, "half") == "done"


async def test_a_deleted_run_leaves_only_a_branch_with_commits(repository: Path) -> None:
    empty = await open_folder(repository, folder_key("a", 1), "empty")
    full = await open_folder(repository, folder_key("a", 2), "full")
    write(full.folder, "new", "x")
    await commit_folder(full, "Step")
    for key in (folder_key("a", 1), folder_key("a", 2), folder_key("a", 3)):
        await forget_folder(repository, key)
    assert not exists(empty.path)
    assert (await git(repository, "branch", "--format=%(refname:short)")).split() == ["full", "main"]
    assert os.listdir(repository / ".git/portico-folders") == []


def test_a_key_is_the_same_for_the_same_place_and_short() -> None:
    long = folder_key("job-1", 5, *(["a step with a long name"] * 20))
    assert (len(long) <= 80, long) == (True, folder_key("job-1", 5, *(["a step with a long name"] * 20)))
    assert folder_key("job-1", 5, "a/b", 3) == "job-1-5-a-b-3"
    assert len({folder_key("job-1", 5), folder_key("job-1", 6), folder_key("job-2", 5), folder_key("job-1", 5, 1)}) == 4
