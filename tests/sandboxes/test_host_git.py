"""git of the host in folders that confined programs can write: no setting of a repository makes a program run outside.

The table: every git setting that starts a program, in every kind of repository, at every place of the host that runs
git. A confined command makes the attack; then the places run, and none may leave a mark outside of the sandbox.
"""

import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from portico import limits
from portico.doors.ahp.view import config as branches_view
from portico.doors.ahp.view import git_meta
from portico.features.changes import review
from portico.features.jobs import folders as job_folders
from portico.features.jobs.steps.ask import diff_of
from portico.features.sandboxes.events import SandboxEntered
from portico.features.sandboxes.feature import Sandboxes, confine
from portico.features.sandboxes.host_git import EnteredFolders, HostGit
from portico.kernel.errors import Conflict, NotFound, PorticoError, SandboxUnavailable
from portico.kernel.events import HOST
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.sandbox.policy import Policy
from portico.testing.fixtures import HostOpener
from portico.workspace import git as host_git
from portico.workspace import refs, worktree
from portico.workspace.changes import Changes
from portico.workspace.git import Repository
from tests.features import feature
from tests.sandboxes.test_later import WHO, git
from tests.sandboxes.test_running import output

GROUPS: dict[str, dict[str, str]] = {
    "filters": {
        "filter.x.clean": "sh $P filter.x.clean; cat",
        "filter.x.smudge": "sh $P filter.x.smudge; cat",
        "merge.x.driver": "sh $P merge.x.driver; exit 1",
    },
    "a process filter": {"filter.x.process": "sh $P filter.x.process"},
    "missing objects": {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "ssh://x/y",
        "core.sshCommand": "sh $P core.sshCommand",
    },
    "missing objects of a server": {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "../mark",
        "remote.origin.uploadpack": "sh $P remote.origin.uploadpack",
    },
    "missing objects of ext": {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
        "remote.origin.url": "ext::sh $P remote.origin.url",
    },
    "signatures": {"commit.gpgSign": "true", "gpg.program": "$HOOKS/gpg.program"},
    "signatures with ssh": {
        "commit.gpgSign": "true",
        "gpg.format": "ssh",
        "gpg.ssh.defaultKeyCommand": "sh $P gpg.ssh.defaultKeyCommand",
        "gpg.ssh.program": "$HOOKS/gpg.ssh.program",
    },
    "others": {
        "core.hooksPath": "$HOOKS",
        "core.fsmonitor": "sh $P core.fsmonitor",
        "diff.x.command": "sh $P diff.x.command",
        "diff.x.textconv": "sh $P diff.x.textconv",
        "diff.external": "sh $P diff.external",
        "core.editor": "sh $P core.editor",
        "core.pager": "sh $P core.pager",
        "core.askPass": "sh $P core.askPass",
        "core.gitProxy": "sh $P core.gitProxy",
        "core.alternateRefsCommand": "sh $P core.alternateRefsCommand",
        "sequence.editor": "sh $P sequence.editor",
        "credential.helper": "!sh $P credential.helper",
        "interactive.diffFilter": "sh $P interactive.diffFilter",
        "alias.status": "!sh $P alias.status",
        "lfs.customtransfer.x.path": "sh $P lfs",
        "submodule.recurse": "true",
        "submodule.inner.update": "!sh $P submodule.inner.update",
        "diff.submodule": "diff",
        "status.submoduleSummary": "true",
        "trailer.x.cmd": "sh $P trailer.x.cmd",
        "uploadpack.packObjectsHook": "sh $P uploadpack.packObjectsHook",
        "include.path": "../included",
    },
}
"""Settings that start programs, in groups that do not prevent each other."""
PROGRAMS = ("pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction", "gpg.program",
            "gpg.ssh.program")  # fmt: skip
NEW = "git init -q; echo one > file; git add file; git commit -qm one"


def configured(group: str) -> str:
    """The shell line that puts the settings of a group into the repository of the current folder."""
    lines = ["echo '* filter=x diff=x merge=x' > .gitattributes", "mkdir -p .hooks", "git config -f included a.b c"]
    for name in PROGRAMS:
        lines.append(f"printf '#!/bin/sh\\nsh %s {name}\\n' $P > .hooks/{name}; chmod +x .hooks/{name}")
    for name, value in GROUPS[group].items():
        lines.append(f'git config {name} "{value.replace("$HOOKS", "$PWD/.hooks")}"')
    if "missing" in group:
        lines.append("rm -f .git/objects/*/$(git rev-parse HEAD:file | cut -c3-)")
    return "; ".join(lines)


SUBMODULE = "printf '[submodule \"inner\"]\\n\\tpath = inner\\n\\turl = ./inner\\n\\tignore = none\\n' >> .gitmodules"
GITLINK = "git add -f .gitmodules; git update-index --add --cacheinfo 160000,$(git -C inner rev-parse HEAD),inner"
INNER = f"mkdir inner; (cd inner; {NEW}; SET; echo two > file); {SUBMODULE}; {GITLINK}; git commit -qm inner"
OTHER = f"mkdir o; (cd o; {NEW}); mv o/.git git2; echo gitdir: git2 > .git; SET"
SHAPES: dict[str, tuple[str, str]] = {
    "a repository inside of one": ("main", INNER),
    "a repository inside of a work tree": ("tree", INNER),
    "a repository inside of a submodule": ("main/module", INNER),
    "the repository": ("main", "SET"),
    "the repository of a work tree": ("tree", "SET"),
    "the repository of a submodule": ("main/module", "SET"),
    "another git folder of a work tree": ("tree", OTHER),
    "another git folder of a submodule": ("main/module", OTHER),
    "a submodule that is replaced": ("main", f"cd module; rm -f .git; {NEW}; SET; echo two > file"),
}
"""Where the session works, and how the settings get there. The last kind is a new repository, with every group."""


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a work tree and a submodule, an empty folder, and a home folder with a name for commits."""
    home, library, main = tmp_path / "user", tmp_path / "library", tmp_path / "main"
    for each in (home, library, main, tmp_path / "empty", tmp_path / "started"):
        each.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@example.com\n")
    monkeypatch.setenv("HOME", str(home))
    for each in (library, main):
        git(each, "init", "-q")
        (each / "file").write_text("one\n")
        git(each, "add", ".")
        git(each, "commit", "-qm", "one")
    git(main, "submodule", "--quiet", "add", str(library), "module")
    git(main, "commit", "-qm", "module")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    return tmp_path


async def attacked(host: Host, ground: Path, where: str, line: str) -> str:
    """Run the attack in a sandbox, and change a file."""
    folder = ground / where
    session = await host.start(by="test", cwd=str(folder), config={"sandbox": "project"})
    program = folder / "mark.sh"
    program.write_text(f"echo ran >> {ground}/started/$1\n")
    names = " ".join(f"{name}={value}" for name, value in WHO.items())
    said = await output(session, f"export {names} P={program}; {line}")
    (folder / "file").write_text("three\n")
    (folder / "fresh").write_text("new\n")
    return said


Place = Callable[[Session, Path], Awaitable[object]]


async def _captures(session: Session, folder: Path) -> None:
    changes = await Changes.open(folder)
    before, after = await changes.base(), await changes.capture("test/after")
    await changes.between(before, after.tree)
    await changes.patch(before, after.tree)


async def _job(session: Session, folder: Path) -> None:
    parent = await job_folders.open_folder(folder, "parent", "jobs/parent")
    child = await job_folders.open_folder(folder, "child", "jobs/child")
    for tree, text in ((parent, "mine\n"), (child, "yours\n")):
        (Path(tree.path) / "file").write_text(text)
        await job_folders.commit_folder(tree, "changed")
    await job_folders.merge_folder(parent, child, "merged")
    await job_folders.restore_folder(child, child.base)
    await job_folders.close_folder(child, into=parent)
    await job_folders.close_folder(parent)


async def _worktree(session: Session, folder: Path) -> None:
    made = await worktree.create(folder, "made")
    (Path(made.folder) / "file").write_text("changed")
    await worktree.remove(made, force=True)


async def _discard(session: Session, folder: Path) -> None:
    (folder / "file").write_text("four\n")
    tree = await review.discard(session, ["file"], None, by="test")
    await review.undo_discard(session, ["file"], tree, by="test")


PLACES: dict[str, Place] = {
    "status": lambda session, folder: git_meta.of_folder(folder),
    "branches": lambda session, folder: branches_view.branches(folder),
    "captures": _captures,
    "uncommitted": lambda session, folder: review.uncommitted_diff(session),
    "difference": lambda session, folder: diff_of(str(folder)),
    "discard": _discard,
    "commit": lambda session, folder: review.commit(session, "later", [], None, by="test"),
}
IN_WORKTREES: dict[str, Place] = {"worktree": _worktree, "job": _job}


async def visited(host: Host, folder: Path, marks: Path, places: dict[str, Place]) -> dict[str, list[str]]:
    """Run git of the host at these places; return which programs of the repository ran outside, by the place. Each
    leaves a file in `marks`."""
    session = await host.start(by="test", cwd=str(folder), config={"sandbox": "off"})
    found: dict[str, list[str]] = {}
    for name, place in places.items():
        with suppress(PorticoError):
            await place(session, folder)
        if ran := sorted(os.listdir(marks)):
            found[name] = ran
        for each in ran:
            (marks / each).unlink()
    return found


@pytest.mark.parametrize("group", GROUPS)
async def test_a_new_repository_starts_nothing(open_host: HostOpener, ground: Path, group: str) -> None:
    host = await open_host()
    said = await attacked(host, ground, "empty", f"{NEW}; {configured(group)}")
    assert await visited(host, ground / "empty", ground / "started", PLACES) == {}, said


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_repository_of_the_user_starts_nothing(open_host: HostOpener, ground: Path, shape: str) -> None:
    where, line = SHAPES[shape]
    host = await open_host()
    said = await attacked(host, ground, where, line.replace("SET", configured("filters")))
    assert await visited(host, ground / where, ground / "started", PLACES) == {}, said


@pytest.mark.parametrize(
    ("group", "places", "runs"),
    [
        ("filters", PLACES, {"filter.x.clean", "filter.x.smudge"}),
        ("filters", IN_WORKTREES, {"filter.x.clean", "filter.x.smudge", "merge.x.driver"}),
        ("a process filter", PLACES, {"filter.x.process"}),
        ("missing objects", PLACES, {"core.sshCommand"}),
        ("missing objects of a server", PLACES, {"remote.origin.uploadpack"}),
        ("missing objects of ext", PLACES, {"remote.origin.url"}),
        ("signatures", PLACES, {"gpg.program"}),
        ("signatures with ssh", PLACES, {"gpg.ssh.defaultKeyCommand"}),
        ("others", PLACES, set()),
    ],
)
async def test_the_programs_start_if_git_is_not_confined(
    open_host: HostOpener, ground: Path, group: str, places: dict[str, Place], runs: set[str]
) -> None:
    """Otherwise the table proves nothing. Those of the last group have no effect with the arguments of the host."""
    host = await open_host()
    line = f"{NEW}; {configured(group)}" + (
        "; git add .gitattributes; git commit -qm two" if group == "filters" else ""
    )
    said = await attacked(host, ground, "empty", line)
    for each in (ground / "started").iterdir():
        each.unlink()
    host_git.confined_by.remove(feature(host, Sandboxes)._git.policy)
    found = await visited(host, ground / "empty", ground / "started", places)
    assert {name for ran in found.values() for name in ran} >= runs, (found, said)
    assert bool(found) is bool(runs), found


@pytest.mark.parametrize("name", ["discard", "commit", "worktree"])
async def test_filters_of_a_new_repository_are_named(open_host: HostOpener, ground: Path, name: str) -> None:
    """A commit without its filters would store other contents; with git-crypt, the plain text."""
    host = await open_host()
    await attacked(host, ground, "empty", f"{NEW}; {configured('filters')}")
    session = await host.start(by="test", cwd=str(ground / "empty"), config={"sandbox": "off"})
    with pytest.raises(Conflict, match=r"may have been made in a sandbox.*filter\.x\.clean, filter\.x\.smudge"):
        await {**PLACES, **IN_WORKTREES}[name](session, ground / "empty")


async def test_everything_works_in_a_new_repository(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    folder = ground / "empty"
    await attacked(host, ground, folder.name, NEW)
    (ground / "user/.config/git").mkdir(parents=True)
    (ground / "user/.config/git/ignore").write_text("mark.sh\n")
    session = await host.start(by="test", cwd=str(folder), config={"sandbox": "off"})
    git(folder, "worktree", "add", "-q", str(ground / "linked"), "-b", "linked")
    for place in (PLACES | IN_WORKTREES).values():
        await place(session, folder)
    assert git(folder, "log", "--format=%s").split() == ["later", "one"]
    assert git(folder, "ls-files").split() == ["file", "fresh"]  # the user's list of ignored files applies
    assert str(ground / "linked") in git(folder, "worktree", "list")


async def test_a_job_works_in_work_trees_with_sandboxes(open_host: HostOpener, ground: Path) -> None:
    """The filters of the user's own repository run, and the branches are merged."""
    host = await open_host()
    main = ground / "main"
    git(main, "config", "filter.x.clean", "tr a-z A-Z")
    (main / ".gitattributes").write_text("loud filter=x\n")
    git(main, "add", ".gitattributes")
    git(main, "commit", "-qm", "attributes")
    parent = await job_folders.open_folder(main, "parent", "jobs/parent")
    child = await job_folders.open_folder(main, "child", "jobs/child")
    for tree in (parent, child):
        session = await host.start(by="test", cwd=tree.folder, config={"sandbox": "project"})
        await output(session, f"echo {Path(tree.path).name} > {Path(tree.path).name}; echo quiet > loud")
        policy = feature(host, Sandboxes)._git.policy
        assert isinstance(policy(Path(tree.path), ["commit", "--no-gpg-sign"], {}), Policy)
        await job_folders.commit_folder(tree, "changed")
    merged = await job_folders.merge_folder(parent, child, "merged")
    assert merged.conflict is None
    assert git(main, "show", f"{parent.branch}:loud") == "QUIET\n"
    assert git(main, "ls-tree", "--name-only", parent.branch).split()[-3:] == ["loud", "module", "parent"]
    await job_folders.close_folder(child, into=parent)
    await job_folders.close_folder(parent)
    assert "main.worktrees" not in os.listdir(ground)


VERBS = ("status", "add", "commit", "restore", "merge", "diff", "ls-files", "rev-parse", "worktree")
INSIDE_TREE = [*VERBS[:2], *VERBS[3:]]


@pytest.mark.parametrize(
    ("shape", "confined"),
    [
        ("main", ["add", "worktree"]),  # a repository of the user
        ("main/module", ["add", "worktree"]),
        ("tree", INSIDE_TREE),  # any sandbox in the repository can change its git folder
        ("empty", INSIDE_TREE),
        ("library", []),  # no sandbox was there
        ("main/inner", INSIDE_TREE),
    ],
)
async def test_which_commands_are_confined(
    open_host: HostOpener, ground: Path, shape: str, confined: list[str]
) -> None:
    host = await open_host()
    for where in ("main", "tree", "main/module", "empty"):
        await attacked(host, ground, where, NEW if where == "empty" else "true")
    (ground / "main/inner").mkdir()
    await attacked(host, ground, "main", f"cd inner; {NEW}")
    policy = feature(host, Sandboxes)._git.policy
    verbs = [verb for verb in VERBS if verb != "commit"]
    assert [verb for verb in verbs if policy(ground / shape, [verb], {}) is not None] == confined


async def test_a_new_work_tree_of_the_user_is_confined_as_well(open_host: HostOpener, ground: Path) -> None:
    """A program that still runs in the sandbox of the main repository can change the git folder of the new one."""
    host = await open_host()
    await attacked(host, ground, "main", "true")
    git(ground / "main", "worktree", "add", "-q", str(ground / "later"), "-b", "later")
    assert feature(host, Sandboxes)._git.policy(ground / "later", ["status"], {}) is not None


async def test_signed_commits_are_refused_with_the_setting(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    await attacked(host, ground, "empty", NEW)
    git(ground / "empty", "config", "commit.gpgSign", "true")
    session = await host.start(by="test", cwd=str(ground / "empty"), config={"sandbox": "off"})
    with pytest.raises(Conflict, match=r"commit\.gpgSign"):
        await PLACES["commit"](session, ground / "empty")


async def test_a_git_file_that_leads_elsewhere_is_no_repository(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    await attacked(host, ground, "empty", f"echo gitdir: {ground}/library/.git > .git")
    with pytest.raises(NotFound, match="does not name this folder"):
        await host_git.call(ground / "empty", "status")
    assert await git_meta.of_folder(ground / "empty") == {}


@pytest.mark.parametrize("name", [".git", ".git/config", ".git/commondir", "../file/.git/gitdir"])
async def test_a_pipe_in_place_of_a_file_blocks_nothing(open_host: HostOpener, ground: Path, name: str) -> None:
    host = await open_host()
    line = "mkdir -p .git/objects .git/refs; echo ref: refs/heads/main > .git/HEAD"
    if name == ".git":
        line = "mkfifo .git"
    elif name.startswith(".."):
        line = "mkdir -p own; echo gitdir: own > .git; mkfifo own/gitdir"
    else:
        line += f"; rm -f {name}; mkfifo {name}"
    await attacked(host, ground, "empty", line)
    with suppress(PorticoError):
        feature(host, Sandboxes)._git.policy(ground / "empty", ["status"], {})
    session = await host.start(by="test", cwd=str(ground / "empty"), config={"sandbox": "project"})
    await output(session, "true")


async def test_repositories_inside_are_read_only_if_they_are_the_users(open_host: HostOpener, ground: Path) -> None:
    """The user's `git status` there would run a program. One that the agent has made can be configured by it."""
    host = await open_host()
    session = await host.start(by="test", cwd=str(ground), config={"sandbox": "project"})
    for inside in ("library", "main", "main/module", "tree"):
        said = await output(session, f"cd {inside}; git config core.fsmonitor evil")
        assert "could not write config" in said or "could not lock" in said, (inside, said)
    for file in ("main/module/.git", "tree/.git"):
        assert "Read-only" in await output(session, f"echo gitdir: evil > {file}")
    await output(session, f"mkdir own; cd own; {NEW.replace('git commit', 'true')}")
    assert await output(session, "cd own; git config user.name me; git config user.name") == "me"


async def test_it_is_remembered(open_host: HostOpener, ground: Path) -> None:
    """What was planted stays when the host is started again, and when the session is deleted."""
    host = await open_host()
    await attacked(host, ground, "empty", f"{NEW}; {configured('filters')}")
    entered = EnteredFolders(host.log)
    await entered.read()
    assert HostGit(entered, {}).policy(ground / "empty", ["status"], {}) is not None
    assert not entered.touches([str(ground / "library")])


async def test_it_is_recorded_before_the_first_process(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(ground / "main"), config={"sandbox": "project"})
    await confine(session)
    events = [record.event for record in await host.log.read(HOST)]
    entered = {event.folder: event.git for event in events if isinstance(event, SandboxEntered)}
    dot = str(ground / "main/.git")
    assert entered[str(ground / "main")] == entered[dot] == [dot, f"{dot}/modules/module"]
    before = len(events)
    await confine(session)
    assert len(await host.log.read(HOST)) == before


async def test_a_removed_repository_is_not_the_users_any_more(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    folder = ground / "library"
    await attacked(host, ground, folder.name, "true")
    policy = feature(host, Sandboxes)._git.policy
    assert policy(folder, ["status"], {}) is None
    shutil.rmtree(folder / ".git")
    await attacked(host, ground, folder.name, NEW)
    assert policy(folder, ["status"], {}) is not None


async def test_too_many_folders_are_refused(
    open_host: HostOpener, ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ENTERED_FOLDERS", 4)
    host = await open_host()
    entered = feature(host, Sandboxes)._entered
    for number in range(4):
        (ground / f"folder-{number}").mkdir()
        await entered.enter({str(ground / f"folder-{number}"): ()})
    (ground / "folder-0").rmdir()
    await entered.enter({str(ground / "empty"): ()})  # the removed one is forgotten
    with pytest.raises(SandboxUnavailable, match="more than 4 folders"):
        await entered.enter({str(ground / "main"): ()})


def test_paths_are_compared_by_folders() -> None:
    entered = EnteredFolders(None)  # type: ignore[arg-type]
    entered._set({"/a/b": (), "/a/b-c": (), "/a/b/d": ()})
    asked = ("/a", "/a/b", "/a/b/x", "/a/b-d", "/a/bb", "/", "/c")
    assert [path for path in asked if entered.touches([path])] == ["/a", "/a/b", "/a/b/x", "/"]


@pytest.mark.parametrize(
    "name", ["refs/portico", "refs/portico/test", "portico-folders", "refs/portico/test/after.lock"]
)
async def test_the_host_follows_no_link_out_of_a_git_folder(open_host: HostOpener, ground: Path, name: str) -> None:
    """A link exists until the turn ends. The host itself writes the refs of captures and the records of jobs."""
    host = await open_host()
    target = ground / "library" / "away"
    target.mkdir()
    link = f"mkdir -p .git/$(dirname {name}); rm -rf .git/{name}; ln -s {target} .git/{name}"
    await attacked(host, ground, "main", link)
    session = await host.start(by="test", cwd=str(ground / "main"), config={"sandbox": "off"})
    for place in (_captures, _job):
        with suppress(PorticoError):
            await place(session, ground / "main")
    assert os.listdir(target) == []


@pytest.mark.parametrize("name", ["refs/portico/test/after", "packed-refs", "portico-folders/parent.json"])
async def test_a_pipe_in_a_git_folder_blocks_nothing(open_host: HostOpener, ground: Path, name: str) -> None:
    host = await open_host()
    await attacked(host, ground, "main", f"mkdir -p .git/$(dirname {name}); mkfifo .git/{name}")
    common = ground / "main/.git"
    assert refs.read(common, "refs/portico/test/after") is None
    repository = Repository(ground / "main", common, common, "", {})
    with suppress(OSError):
        assert job_folders._read(repository, "parent") is None
