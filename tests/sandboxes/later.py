"""What a confined program plants for git outside of the sandbox, as one script for every place in which an agent's work
runs: each attack of `test_later.ATTACKS` on the repository, and new repositories with filters."""

import os
import subprocess
from pathlib import Path

from portico.sandbox.launch import MARK
from tests.sandboxes.test_later import ATTACKS, WHO, git

NEW = "git init -q; echo x > file; git add file; git commit -qm one; git config filter.x.clean $P"
FILTERS = f"{NEW}; git config filter.x.smudge $P; echo '* filter=x' > .gitattributes; echo y > file"
HOOKS = (".hooks", ".husky")
"""Folders that `core.hooksPath` has to name; then the attacks on other hooks have no effect."""
LINES = {
    **{
        name: line.replace("worktrees/other/", "worktrees/other-tree/")
        for name, (where, line) in ATTACKS.items()
        if where == "main" and not any(hooks in line for hooks in HOOKS)
    },
    "a new repository": f"mkdir -p new; cd new; {FILTERS}",
    "a submodule that is replaced": f"cd module; rm -f .git; {FILTERS}",
}


class Planted:
    def __init__(self, work: Path, only: str = "") -> None:
        """`work`: a repository without a commit. It gets one, a submodule, a work tree and files that settings name.
        `only`: one of the attacks."""
        self.work = work
        self.marks = work.parent / "started"
        self.marks.mkdir()
        library = work.parent / "library"
        subprocess.run(["git", "init", "-q", str(library)], check=True)
        for folder in (library, work):
            (folder / "file").write_text("one\n")
            git(folder, "add", "file")
            git(folder, "commit", "-qm", "one")
        git(work, "submodule", "--quiet", "add", str(library), "module")
        git(work, "worktree", "add", "-q", str(work.parent / "other-tree"), "-b", "other")
        for name in ("clean.sh", "settings"):
            (work / name).write_text("#!/bin/sh\ncat\n" if name == "clean.sh" else "")
            (work / name).chmod(0o755)
        git(work, "config", "extensions.worktreeConfig", "true")
        git(work, "config", "include.path", "../settings")
        git(work, "config", "filter.y.clean", "./clean.sh")
        (work / ".gitattributes").write_text("filtered filter=y\n")
        git(work, "add", ".")
        git(work, "commit", "-qm", "two")
        (work / "copy.sh").write_text(f"#!/bin/sh\ntouch {self.marks}/ran\ncat\n")
        (work / "copy.sh").chmod(0o755)
        attacks = [line for name, line in LINES.items() if only in ("", name)]
        names = " ".join(f"{name}={value}" for name, value in WHO.items())
        lines = [f"export {names} P=$(pwd)/copy.sh G=$(pwd)/.git; unset {MARK}", *(f"({line})" for line in attacks)]
        (work / "later.sh").write_text("\n".join([*lines, "touch later.done", "exit 0", ""]))

    def check(self) -> None:
        """Use git outside, as the user would; no program of the attacks may start."""
        assert (self.work / "later.done").exists()
        for folder in (self.work, self.work.parent / "other-tree"):
            (folder / "filtered").write_text("new\n")
            git(folder, "status", "--ignore-submodules=dirty")
            git(folder, "add", "filtered")
            git(folder, "commit", "-qm", "later", "--", "filtered")
            git(folder, "checkout", "-q", "--", ".")
        assert os.listdir(self.marks) == []
        assert os.path.isdir(self.work / "new/.git")
