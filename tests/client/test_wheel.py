"""The wheel `portico-client` alone: the client and the shapes work, and nothing of the server is there."""

import asyncio
import re
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from tools import client_wheel

from portico import __version__
from tests.client.test_guide import prepared
from tests.doors.standing import standing
from tests.process import environment
from tests.test_dist import closure

SERVER = (
    "portico/doors",
    "portico/kernel/log",
    "portico/cli/",
    "portico/agents",
    "portico/kernel/host.py",
    "portico/cluster",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return client_wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with this wheel and what it declares, which is linked from here."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    program = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(program), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True, timeout=120)
    site = next((folder / "lib").glob("python*/site-packages"))
    found = next(iter(metadata.distributions(name="portico-client", path=[str(site)])))
    assert found.version == __version__
    names = {re.split(r"[^a-z]", each)[0] for each in found.requires or []}
    assert names == set(client_wheel.NEEDS)
    for distribution in closure(found.requires or []):
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    return program


def _run(python: Path, code: str) -> str:
    done = subprocess.run(
        [str(python), "-I", "-c", code], capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_contains_no_server(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if name.startswith(SERVER)] == []
    assert {"portico/client/client.py", "portico/kernel/events/turn.py", "portico/py.typed"} <= {*names}
    assert wheel.stat().st_size < 250_000


def test_every_module_of_it_can_be_imported(wheel: Path, python: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        modules = [name[:-3].replace("/", ".") for name in archive.namelist() if name.endswith(".py")]
    code = "import importlib\nfor name in {names!r}:\n    importlib.import_module(name)\nprint('imported')"
    names = [name.removesuffix(".__init__") for name in modules]
    assert _run(python, code.format(names=names)) == "imported\n"


def test_it_runs_where_portico_is_not_installed(python: Path) -> None:
    code = "import importlib.util, portico; print(portico.__file__, importlib.util.find_spec('portico.doors'))"
    place, _, doors = _run(python, code).strip().rpartition(" ")
    assert str(python.parent.parent) in place
    assert doors == "None"


async def test_the_script_of_the_guide_runs_with_it(python: Path, tmp_path: Path) -> None:
    project = prepared(tmp_path)
    async with standing(tmp_path, agents=("scripted",), script=tmp_path / "rules.yaml") as here:
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-I", "drive.py", str(project), "write it"),
            cwd=tmp_path,
            env=environment(PORTICO_HOME=str(here.home.path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, errors = (each.decode() for each in await process.communicate())
    assert (process.returncode, errors) == (0, "")
    assert "added a.txt +1 -0" in printed.splitlines()


def test_a_client_needs_no_part_of_the_host(python: Path) -> None:
    """A client that imports the host starts slowly: 248 modules once, because a shape was beside the engine of jobs.
    Each feature with commands adds two: its package, and its commands."""
    code = "import sys, portico.client; print(len([n for n in sys.modules if n.split('.')[0] == 'portico']))"
    assert int(_run(python, code)) < 112
