"""Failures that agents tell as their answer, in the words that they were seen to use."""

import pytest

from portico.agents.acp.error_text import failure
from portico.errors import AgentError

RETRY = "Please retry if you think this is a transient or recoverable error."
INFO = "Info: Request failed due to a transient API error. Retrying..."
RETRIED = (
    "Failed to get response from the AI model; retried 5 times (total retry wait time: 16.03 seconds) "
    "Last error: 500 internal trouble"
)
MISSING = (
    "Model 'gpt-4.1' not found on provider at http://127.0.0.1:1/v1 (HTTP 404).\n"
    "  Check that the model is available on your provider"
)
AUTH = "Authentication failed with provider at http://127.0.0.1:1/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY"


@pytest.mark.parametrize(
    ("kind", "words", "code", "message"),
    [
        ("goose", f"Ran into this error: Rate limit exceeded.\n\n{RETRY}", "agent_failed", "Rate limit exceeded."),
        ("goose", f"Ran into this error: Not logged in.\n\n{RETRY}", "sign_in_required", "Not logged in."),
        ("copilot", f"{INFO}{INFO}Error: {AUTH}.", "sign_in_required", f"{AUTH}."),
        ("copilot", f"{INFO}Error: {RETRIED}", "agent_failed", f"{RETRIED}."),
        ("copilot", f"Error: {MISSING}.", "agent_failed", f"{MISSING}."),
    ],
)
def test_a_failure(kind: str, words: str, code: str, message: str) -> None:
    found = failure(kind, "It", words)
    assert isinstance(found, AgentError)
    assert (found.code, found.message) == (code, f"It: {message}")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("goose", f"It says: Ran into this error: no.\n\n{RETRY}"),
        ("goose", "Ran into this error: no."),
        ("copilot", "Error: 400 scripted error"),
        ("copilot", "Error: the file is not there, so I made it."),
        ("copilot", "The log says:\nError: 400 bad"),
        ("opencode", "Error: 400 scripted error"),
        (None, "Error: 400 scripted error"),
        ("copilot", ""),
    ],
)
def test_an_answer(kind: str | None, words: str) -> None:
    assert failure(kind, "It", words) is None
