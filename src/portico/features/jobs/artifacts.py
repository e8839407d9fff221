"""The files that a job keeps. Their content goes into the log, because the folder of the run is removed."""

import asyncio
from pathlib import Path

from portico.features.jobs.check import files_below
from portico.features.jobs.events import Artifact
from portico.features.secrets.mask import Mask
from portico.kernel.log.log import Log
from portico.workspace.glob import Glob

ARTIFACTS = 100
"""Files of one job; a folder of more belongs into an archive."""
ARTIFACT_BYTES = 8 * 1024 * 1024
"""Of one file: it is stored in the log."""


async def keep_artifacts(log: Log, folder: Path, globs: list[str], mask: Mask) -> list[Artifact]:
    """Store the files that match. Larger files and links are left out."""
    if not globs:
        return []
    found = await asyncio.to_thread(_read, folder, [Glob(each) for each in globs])
    return [Artifact(path, len(data), await log.put_blob(data)) for path, data in _masked(found, mask)]


def _masked(found: list[tuple[str, bytes]], mask: Mask) -> list[tuple[str, bytes]]:
    return [(path, mask.data(data)) for path, data in found]


def _read(folder: Path, globs: list[Glob]) -> list[tuple[str, bytes]]:
    names = [path for path in files_below(folder) if any(glob.matches(path) for glob in globs)]
    paths = [(name, folder / name) for name in names]
    kept = [(name, path) for name, path in paths if not path.is_symlink() and path.stat().st_size <= ARTIFACT_BYTES]
    return [(name, path.read_bytes()) for name, path in kept[:ARTIFACTS]]
