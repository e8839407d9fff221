"""One running host for all tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process import HostProcess


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    with HostProcess(tmp_path_factory.mktemp("cli") / "home") as host:
        yield host


@pytest.fixture(scope="module")
def home(host: HostProcess) -> Path:
    return host.home
