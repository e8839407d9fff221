"""Real agents on a busy machine may be silent for longer than a person would accept."""

import pytest

from portico import limits


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No remark about silence: what the agent itself said is what these tests look at."""
    monkeypatch.setattr(limits, "SILENCE_SECONDS", (600.0,))
