"""Every published reducer fixture of both dialects."""

from typing import Any

import pytest

from tests.doors.ahp.fixtures import V1, bare, dialect, fold, load, needs_fixtures


@needs_fixtures
@pytest.mark.parametrize("fixture", load("v1-seed/reducers"))
def test_version_1(fixture: dict[str, Any]) -> None:
    assert fold(fixture["reducer"], fixture["initial"], fixture["actions"], V1) == bare(fixture["expected"])


@needs_fixtures
@pytest.mark.parametrize("fixture", load("v0.7.0/reducers"))
def test_version_0_7(fixture: dict[str, Any]) -> None:
    spoken = dialect("0.7.0")
    assert fold(fixture["reducer"], fixture["initial"], fixture["actions"], spoken) == bare(fixture["expected"])
