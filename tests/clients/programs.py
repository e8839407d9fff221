"""Programs of others that use Portico: `make test` installs them into node_modules here."""

import asyncio
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
NODE = HERE.parent / "live/node_modules/node22/bin/node"
"""Some of them need Node 22, which the live agents bring along."""


def installed(package: str) -> Path:
    found = MODULES / package
    assert found.exists(), f"{package} is not installed; run: npm --prefix tests/clients ci --ignore-scripts"
    return found


def node() -> str:
    if not NODE.exists():
        pytest.skip("Node 22 is not installed; run tests/live/install.sh")
    return str(NODE)


async def run(*command: str, cwd: Path, **environment: str) -> str:
    """What a program prints. It has to succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={"PATH": f"{NODE.parent}:/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed[-6000:]
    return printed
