"""What is known of a repository without asking git is what git says, and a change of any file is noticed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portico.workspace import git as git_module
from portico.workspace.changes import Changes
from portico.workspace.git import git, repository
from portico.workspace.git_files import git_files, plain_work_tree


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = tmp_path / "project"
    (folder / "part").mkdir(parents=True)
    await git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    await git(folder, "add", "-A")
    await git(folder, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--no-gpg-sign", "-m", "first")
    return folder


def write(path: Path, text: str) -> int:
    with path.open("a") as file:
        return file.write(text)


def link(folder: Path) -> None:
    (folder / ".git").rename(folder.parent / "elsewhere")
    (folder / ".git").symlink_to(folder.parent / "elsewhere")


FILTER = '[filter "x"]\n\tclean = touch /nonexistent\n'
UNCLEAR: dict[str, Callable[[Path], object]] = {
    "a filter of the repository": lambda folder: write(folder / ".git/config", FILTER),
    "a filter of the user": lambda folder: write(folder.parent / "home/.gitconfig", FILTER),
    "a filter in the other file of the user": lambda folder: write(folder.parent / "home/.config/git/config", FILTER),
    "an included filter": lambda folder: (
        write(folder / ".git/config", "[include]\n\tpath = more\n"),
        write(folder / ".git/more", FILTER),
    ),
    "an included filter of the home": lambda folder: (
        write(folder / ".git/config", '[includeIf "gitdir:/"]\n\tpath = ~/more\n'),
        write(folder.parent / "home/more", FILTER),
    ),
    "another work tree": lambda folder: write(folder / ".git/config", f"[core]\n\tworktree = {folder}/part\n"),
    "a bare repository": lambda folder: write(folder / ".git/config", "[core]\n\tbare = true\n"),
    "bare without a value": lambda folder: write(folder / ".git/config", "[core]\n\tbare\n"),
    "a .git that is a link": link,
    "no HEAD": lambda folder: (folder / ".git/HEAD").unlink(),
    "a HEAD that is none": lambda folder: (folder / ".git/HEAD").write_text("nonsense\n"),
    "no objects": lambda folder: (folder / ".git/objects").rename(folder / ".git/gone"),
    "a large settings file": lambda folder: write(folder / ".git/config", "# x\n" * 20_000),
}


@pytest.mark.parametrize("name", UNCLEAR)
async def test_git_is_asked_where_the_answer_is_not_certain(folder: Path, name: str) -> None:
    before = git_files(folder)
    assert before is not None
    assert plain_work_tree(folder, before) == folder
    UNCLEAR[name](folder)
    after = git_files(folder)
    assert after != before
    assert after is None or plain_work_tree(folder, after) is None


@pytest.mark.parametrize("where", [".", "part", ".git", ".git/objects"])
async def test_it_is_what_git_says(folder: Path, where: str) -> None:
    inside = folder / where
    files = git_files(inside)
    assert files is not None
    top = plain_work_tree(inside, files)
    assert (top is None) == where.startswith(".git")
    if top is not None:
        known = git_module._plain(inside, top)
        assert known == git_module._ask(inside)
        assert known == await repository(inside)


async def test_a_link_to_the_folder_is_the_folder(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    inside = folder.parent / "link" / "part"
    files = git_files(inside)
    assert files is not None
    top = plain_work_tree(inside, files)
    assert top is not None
    assert git_module._plain(inside, top) == git_module._ask(inside)


async def test_a_filter_that_comes_later_does_not_run(folder: Path) -> None:
    """What is known of a repository is compared with its files each time."""
    (folder / ".gitattributes").write_text("* filter=x\n")
    await (await Changes.open(folder)).capture()
    write(folder / ".git/config", f'[filter "x"]\n\tclean = touch {folder.parent}/ran; cat\n\trequired = true\n')
    (folder / "a.txt").write_text("b\n")
    await (await Changes.open(folder)).capture()
    assert not (folder.parent / "ran").exists()


async def test_a_file_that_cannot_be_read_stays_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = await Changes.open(folder)
    old = (await changes.capture()).tree
    (folder / "secret.txt").write_text("x\n")
    (folder / "b.txt").write_text("b\n")
    may = os.access  # root, who may run these tests, can read every file
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("secret.txt") and may(path, mode))
    found = await changes.between(old, (await changes.capture()).tree)
    assert [each.path for each in found.files] == ["b.txt"]
