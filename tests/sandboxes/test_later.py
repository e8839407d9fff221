"""What a confined program leaves for later: nothing that it changes or creates makes a program run, or git write,
outside of the sandbox. Each attack is made with a command of a session; then git runs outside, as the user would."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from portico.features.sandboxes.feature import Sandboxes, confine
from portico.features.sandboxes.git_protection import configured_paths, git_folders_in, prepare
from portico.features.sandboxes.links import GitLinks
from portico.features.sandboxes.paths import program_folders, unmoved, without_links
from portico.kernel.errors import Forbidden
from portico.kernel.session import Session
from portico.sandbox.vendors import Vendor
from portico.testing.fixtures import HostOpener
from tests.features import feature
from tests.sandboxes.test_running import output

WHO = {f"GIT_{role}_{part}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with a commit, a linked work tree and a submodule."""
    library, folder = tmp_path / "library", tmp_path / "main"
    for each in (library, folder):
        each.mkdir()
        git(each, "init", "-q")
        (each / "file").write_text("one\n")
        git(each, "add", ".")
        git(each, "commit", "-qm", "one")
    git(folder, "submodule", "--quiet", "add", str(library), "module")
    git(folder, "commit", "-qm", "module")
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    git(folder, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    return folder


def program(main: Path) -> Path:
    """The program that an attack wants to have started: it leaves a mark."""
    made = main.parent / "mark.sh"
    made.write_text(f"#!/bin/sh\ntouch {main.parent}/started\n")
    made.chmod(0o755)
    return made


async def started(open_host: HostOpener, folder: Path) -> Session:
    host = await open_host()
    return await host.start(by="test", cwd=str(folder), config={"sandbox": "project"})


CONFIG = "git config -f"
HOOK = "mkdir -p $D && cp $P $D/post-commit && cp $P $D/post-checkout && cp $P $D/post-index-change"
MOVED = "cp -r $G evil && git config -f evil/config core.fsmonitor $P && echo $(pwd)/evil > $G/commondir"
ATTACKS = {
    "a hook": ("main", f"D=$G/hooks; {HOOK}"),
    "a hook where there was no folder": ("main", f"rm -rf $G/hooks; D=$G/hooks; {HOOK}"),
    "a hook of the main repository from a work tree": ("tree", f"D=$G/hooks; {HOOK}"),
    "a hook of a submodule": ("main", f"D=$G/modules/module/hooks; {HOOK}"),
    "core.fsmonitor": ("main", "git config core.fsmonitor $P"),
    "core.fsmonitor from a work tree": ("tree", "git config core.fsmonitor $P"),
    "core.fsmonitor of a submodule": ("main", "git config -f $G/modules/module/config core.fsmonitor $P"),
    "config.worktree": ("main", "git config -f $G/config.worktree core.fsmonitor $P"),
    "config.worktree of another work tree": ("main", f"{CONFIG} $G/worktrees/other/config.worktree core.fsmonitor $P"),
    "config.worktree of its own work tree": ("tree", "git config --worktree core.fsmonitor $P"),
    "commondir": ("main", MOVED),
    "commondir of another work tree": ("main", MOVED.replace("$G/commondir", "$G/worktrees/other/commondir")),
    "commondir of a submodule": ("main", MOVED.replace("$G/commondir", "$G/modules/module/commondir")),
    "the file .git of a work tree": ("tree", f"cp -r $G e; {CONFIG} e/config core.fsmonitor $P; echo gitdir: e > .git"),
    "another git folder": ("main", "mv $G old && cp -r old $G && git config -f $G/config core.fsmonitor $P"),
    "core.hooksPath in the work tree": ("main", "cp $P .hooks/post-index-change; cp $P .hooks/post-commit"),
    "a new folder for core.hooksPath": ("main", "mv .hooks old; mkdir .hooks; cp $P .hooks/post-commit"),
    "settings that are included": ("main", "git config -f settings core.fsmonitor $P"),
    "a filter in the work tree": ("main", "cat $P >> clean.sh"),
    "a hook of husky": ("main", "cat $P >> .husky/pre-commit"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
async def test_git_outside_starts_nothing(open_host: HostOpener, main: Path, name: str) -> None:
    where, line = ATTACKS[name]
    mark = program(main)
    for made in (".hooks", ".husky"):
        (main / made).mkdir()
    for file in ("clean.sh", ".husky/pre-commit"):
        (main / file).write_text("#!/bin/sh\ncat\n")
        (main / file).chmod(0o755)
    (main / "settings").write_text("")
    if "hooksPath" in name:
        git(main, "config", "core.hooksPath", ".hooks")
    if "husky" in name:
        git(main, "config", "core.hooksPath", ".husky")
    git(main, "config", "include.path", "../settings")
    git(main, "config", "filter.x.clean", "./clean.sh")
    git(main, "config", "extensions.worktreeConfig", "true")
    (main / ".gitattributes").write_text("filtered filter=x\n")
    if "no folder" in name:
        shutil.rmtree(main / ".git/hooks")
    session = await started(open_host, main.parent / where)
    mark.rename(main.parent / where / "copy.sh")
    said = await output(session, f"P=$(pwd)/copy.sh; G={main}/.git; {line}")
    for folder in (main, main.parent / "tree", main.parent / "other", main / "module"):
        (folder / "filtered").write_text("new\n")
        git(folder, "status")
        git(folder, "add", "filtered")
        git(folder, "commit", "-qm", "later", "--", "filtered")
        git(folder, "checkout", "-q", "--", ".")
    assert not (main.parent / "started").exists(), said


async def test_the_attacks_succeed_without_a_sandbox(main: Path) -> None:
    """Otherwise the table proves nothing."""
    mark = program(main)
    (main / ".git/commondir").unlink(missing_ok=True)
    line = f"P={mark}; G={main}/.git; {ATTACKS['commondir'][1]}"
    await asyncio.to_thread(subprocess.run, ["sh", "-c", line], cwd=main, check=True)
    git(main, "status")
    assert (main.parent / "started").exists()


async def test_git_works_inside_and_outside(open_host: HostOpener, main: Path) -> None:
    """Files that have no effect are created in the git folder; nothing changes for git."""
    before = git(main, "worktree", "list"), git(main, "submodule", "status"), git(main, "log", "--oneline")
    session = await started(open_host, main)
    env = " ".join(f"{name}={value}" for name, value in WHO.items())
    said = await output(session, f"git status -s && {env} git commit -q --allow-empty -m inside && git branch")
    assert said.split()[2:] == ["+", "other", "+", "tree"], said
    after = git(main, "worktree", "list"), git(main, "submodule", "status"), git(main, "log", "--oneline")
    assert after[1] == before[1]
    assert after[2].endswith(before[2])
    assert "inside" in after[2]
    git(main, "gc", "-q")
    git(main, "fsck")
    git(main, "worktree", "add", "-q", str(main.parent / "third"), "-b", "third")
    assert git(main.parent / "third", "status", "-s") == ""


@pytest.mark.parametrize("name", ["logs/HEAD", "COMMIT_EDITMSG", "logs", "new/link"])
async def test_a_link_in_the_git_folder_does_not_outlive_the_turn(open_host: HostOpener, main: Path, name: str) -> None:
    """git follows it, and writes the message of the next commit there."""
    secret = main.parent / "bashrc"
    secret.write_text("old\n")
    session = await started(open_host, main)
    line = f"mkdir -p .git/new; rm -rf .git/{name}; ln -s {secret} .git/{name}; git log --oneline | wc -l"
    await output(session, line)
    assert (main / ".git" / name).is_symlink()
    await feature(session.host, Sandboxes).end(session.id)
    assert not (main / ".git" / name).is_symlink()
    git(main, "commit", "-q", "--allow-empty", "-m", "evil")
    assert secret.read_text() == "old\n"


def test_links_of_the_user_stay(main: Path) -> None:
    """Some tools share parts of git folders with links."""
    shared = main.parent / "shared"
    shared.mkdir()
    (main / ".git/shared").symlink_to(shared)
    (main / ".git/inside").symlink_to("hooks")
    links = GitLinks.of([str(main)])
    (main / ".git/also").symlink_to("hooks")
    (main / ".git/planted").symlink_to(shared)
    assert links.remove_new() == [str(main / ".git/planted")]
    assert [(main / ".git" / name).is_symlink() for name in ("shared", "inside", "also")] == [True] * 3


async def test_a_folder_that_became_a_link_is_refused(open_host: HostOpener, tmp_path: Path) -> None:
    """A session may work below the folder of another one, whose programs can replace it."""
    outer, private = tmp_path / "outer", tmp_path / "private"
    (outer / "inner").mkdir(parents=True)
    private.mkdir()
    (private / "file").write_text("secret")
    session = await started(open_host, outer / "inner")
    assert await output(session, "ls") == ""
    (outer / "inner").rmdir()
    (outer / "inner").symlink_to(private)
    with pytest.raises(Forbidden, match="leads to"):
        await confine(session)
    again = await session.host.get(session.id)
    feature(session.host, Sandboxes)._origins._known.clear()  # as after a restart
    with pytest.raises(Forbidden, match="leads to"):
        await confine(again)


def test_a_grant_is_for_what_was_granted(tmp_path: Path) -> None:
    """A granted path in a writable folder is replaced by a link: the sandbox would show what the link leads to."""
    granted, private = tmp_path / "granted", tmp_path / "private"
    granted.mkdir()
    private.mkdir()
    assert unmoved([str(granted)]) == (str(granted),)
    granted.rmdir()
    granted.symlink_to(private)
    assert unmoved([str(granted)]) == ()


@pytest.mark.parametrize(
    ("moved", "kept"), [("", (".a/login", ".b")), (".a/login", (".b",)), (".a", (".a/login", ".b"))]
)
def test_a_link_inside_of_an_agents_state_is_left_out(tmp_path: Path, moved: str, kept: tuple[str, ...]) -> None:
    """An agent writes its state in one session; the next one would show what the link leads to. The state itself may be
    a link of the user."""
    home = tmp_path / "home"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / ".a" / "login").mkdir(parents=True)
    (home / ".b").mkdir()
    if moved == ".a":
        (home / ".a").rename(elsewhere / "a")
        (home / ".a").symlink_to(elsewhere / "a")
    elif moved:
        (home / moved).rmdir()
        (home / moved).symlink_to(elsewhere)
    assert without_links(Vendor(state=(".a", ".b"), strict_state=(".a/login", ".b")), str(home)).strict_state == kept


def test_a_project_on_the_path_is_not_visible(tmp_path: Path) -> None:
    """A folder `bin` of a project is on the PATH: its programs are visible, not the project."""
    tool, project = tmp_path / "tool", tmp_path / "project"
    for each in (tool, project):
        (each / "bin").mkdir(parents=True)
    (project / ".git").mkdir()
    found = program_folders(path=f"{tool}/bin:{project}/bin")
    assert (str(tool) in found, str(project) in found, str(project / "bin") in found) == (True, False, True)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("[core]\n\thooksPath = .hooks\n", [".hooks"]),
        ("[include]\n\tpath = ../settings\n", ["settings"]),
        ('[filter "x"]\n\tclean = sh ./tools/clean.sh %f\n', ["tools/clean.sh"]),
        ("[core]\n\tsshCommand = 'tools/ssh' -v\n", ["tools/ssh"]),
        ("[core]\n\tbare = false\n[remote]\n\turl = https://example.com/tools\n", []),
        ("[core]\n\thooksPath = /nowhere\n", []),
        ("[core]\n\thooksPath = .git/hooks\n", []),
    ],
)
def test_paths_that_settings_name(tmp_path: Path, settings: str, found: list[str]) -> None:
    for folder in (".git/hooks", ".hooks", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("settings", "tools/clean.sh", "tools/ssh"):
        (tmp_path / file).touch()
    (tmp_path / ".git/config").write_text(settings)
    assert configured_paths(str(tmp_path / ".git"), str(tmp_path)) == [str(tmp_path / each) for each in found]


def test_what_is_prepared_has_no_effect_twice(main: Path) -> None:
    folders = list(git_folders_in(str(main / ".git")))
    assert folders[0] == str(main / ".git")
    assert sorted(os.path.relpath(each, main / ".git") for each in folders[1:]) == [
        "modules/module", "worktrees/other", "worktrees/tree",
    ]  # fmt: skip
    for _ in range(2):
        for each in folders:
            prepare(each)
    assert (main / ".git/commondir").read_text() == ".\n"
    assert git(main, "rev-parse", "--git-common-dir").strip() in (".git", str(main / ".git"))
    assert git(main.parent / "tree", "rev-parse", "--git-common-dir").strip() == str(main / ".git")
