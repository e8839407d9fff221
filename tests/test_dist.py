"""What people install: the sdist and the wheel carry the pages, and nothing but what they declare is needed."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import httpx
import pytest

from tests.process import environment, watchdog

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "src" / "portico" / "doors" / "pages" / "index.html"
PAGES = {"index.html", "index.js", "login.html", "app.html"}


def hatchling(source: Path, target: str, folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    return subprocess.run(
        command, cwd=source, capture_output=True, text=True, timeout=120, check=False, env=environment(**env)
    )


def copy_source(folder: Path) -> Path:
    """A checkout without anything built."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        if name.startswith(("src/", "web/", "hatch_build", "pyproject", "README", "LICENSE", ".gitignore")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not BUILT.is_file():
        pytest.fail("The pages are not built; `make test` builds them first.")
    folder = tmp_path_factory.mktemp("dist")
    done = hatchling(ROOT, "sdist", folder)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the sdist, where there is no Node."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    done = hatchling(source, "wheel", folder, PATH="/nonexistent")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_both_carry_the_pages(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as archive:
        found = {name.partition("/src/portico/doors/pages/")[2] for name in archive.getnames()}
        assert found >= PAGES
        assert not [name for name in archive.getnames() if "node_modules" in name or "/.venv" in name]
    with zipfile.ZipFile(wheel) as archive:
        assert {name.removeprefix("portico/doors/pages/") for name in archive.namelist()} >= PAGES


def test_without_npm_the_build_of_a_checkout_says_what_it_needs(tmp_path: Path) -> None:
    """It built a wheel without pages, and said nothing."""
    source = copy_source(tmp_path / "source")
    done = hatchling(source, "wheel", tmp_path / "out", PATH="/nonexistent")
    assert done.returncode == 1
    assert "Node 20.19 or newer with npm, which is not on the PATH" in done.stderr
    assert "Traceback" not in done.stderr
    bare = hatchling(source, "wheel", tmp_path / "out", PATH="/nonexistent", PORTICO_WITHOUT_PAGES="1")
    assert bare.returncode == 0, bare.stderr


def test_a_failing_npm_is_shown_with_its_output(tmp_path: Path) -> None:
    source = copy_source(tmp_path / "source")
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho 'npm ERR! the registry is away' >&2\nexit 1\n")
    npm.chmod(0o755)
    done = hatchling(source, "wheel", tmp_path / "out", PATH=f"{npm.parent}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "the registry is away" in done.stderr
    assert "failed at `npm ci" in done.stderr


def closure(requirements: list[str]) -> Iterator[metadata.Distribution]:
    """The installed distributions behind these requirements, without extras."""
    seen: set[str] = set()
    waiting = [each for each in requirements if "extra ==" not in each]
    while waiting:
        requirement = waiting.pop()
        name = re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            assert ";" in requirement, f"{name} is declared and not installed"  # for another system
            continue
        yield found
        waiting += [each for each in found.requires or [] if "extra ==" not in each]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with this wheel and what it declares: what is not declared is not there. The dependencies
    are linked from here, so that the test needs no registry."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True, timeout=120)
    site = next((folder / "lib").glob("python*/site-packages"))
    declared = next(iter(metadata.distributions(name="portico", path=[str(site)]))).requires or []
    for distribution in closure(declared):
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder / "bin" / "portico"


def test_the_installed_program_prints_a_login_link_that_opens_the_pages(installed: Path, tmp_path: Path) -> None:
    with (
        subprocess.Popen(
            [str(installed), "serve", "0"],
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(PORTICO_HOME=str(tmp_path / "home"), PATH="/usr/bin:/bin"),
        ) as process,
        watchdog(process),
    ):
        assert process.stderr is not None
        link = next(line.split()[-1] for line in process.stderr if line.startswith("Log in with:"))
        with httpx.Client(follow_redirects=True, trust_env=False, timeout=30) as browser:
            answer = browser.get(link)
            assert answer.status_code == 200
            assert "<title>" in answer.text
            address, _, token = link.partition("/login?tkn=")
            headers = {"Authorization": f"Bearer {token}"}
            agents = browser.get(f"{address}/v1/agents", headers=headers).json()["agents"]
        process.terminate()
        assert process.wait(60) == 0
        rest = process.stderr.read()
    assert [agent["id"] for agent in agents] == ["loop", "demo"]
    assert "WARNING" not in rest
    assert "left out" not in rest


def test_the_real_agents_libraries_are_there_without_an_extra(installed: Path) -> None:
    code = "import acp, copilot, watchfiles, portico; print(portico.__file__)"
    done = subprocess.run(
        [str(installed.parent / "python"), "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert str(installed.parent.parent) in done.stdout
