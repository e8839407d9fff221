"""Builds the wheel `portico-client` from the same source: `python -m tools.client_wheel dist`.

It contains what `import portico.client` loads and nothing else: the client and the shapes, no server. The version and
the versions of its dependencies are those of the project.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
NEEDS = ("httpx", "msgspec", "platformdirs")
"""The packages that these modules import."""
_LOADED = """
import json, sys
import portico.client
print(json.dumps([each.__file__ for name, each in sys.modules.items() if name.split(".")[0] == "portico"]))
"""


def modules() -> list[Path]:
    """The files that the client needs, relative to the source."""
    printed = subprocess.run(
        [sys.executable, "-c", _LOADED], cwd=SOURCE, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, check=True
    ).stdout
    return sorted(Path(each).resolve().relative_to(SOURCE.resolve()) for each in json.loads(printed))


def project() -> str:
    """The `pyproject.toml` of the wheel."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^A-Za-z0-9_-]", each)[0]: each for each in root["dependencies"]}
    return f"""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "portico-client"
dynamic = ["version"]
description = "The Python client of Portico, the host for coding agents."
readme = "README.md"
license = {json.dumps(root["license"])}
requires-python = {json.dumps(root["requires-python"])}
dependencies = {json.dumps([declared[each] for each in NEEDS])}

[tool.hatch.version]
path = "src/portico/__init__.py"

[tool.hatch.build.targets.wheel]
packages = ["src/portico"]
"""


def build(target: Path) -> Path:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for path in [*modules(), Path("portico/py.typed")]:
            (folder / "src" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / path, folder / "src" / path)
        (folder / "pyproject.toml").write_text(project())
        shutil.copy(ROOT / "LICENSE", folder)
        shutil.copy(ROOT / "docs/guide/python.md", folder / "README.md")
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            str(target.resolve()),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
    return next(target.glob("portico_client-*.whl"))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
