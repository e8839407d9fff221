"""One Temporal server for all tests of a process."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.testing.temporal import TemporalServer


@pytest.fixture(scope="session")
def temporal() -> Iterator[TemporalServer]:
    with tempfile.TemporaryDirectory(prefix="portico-temporal-") as folder:
        server = TemporalServer(Path(folder)).start()
        yield server
        server.stop(at_once=True)
