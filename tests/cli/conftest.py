"""One running host for all tests of a module; or one that is not there, with answers of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.client import Client
from tests.cli.fake_host import FakeHost
from tests.process import HostProcess


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    with HostProcess(tmp_path_factory.mktemp("cli") / "home") as host:
        yield host


@pytest.fixture(scope="module")
def home(host: HostProcess) -> Path:
    return host.home


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """What every verb talks to."""
    fake = FakeHost()
    monkeypatch.setattr(Client, "local", lambda home=None: fake.client())
    return fake
