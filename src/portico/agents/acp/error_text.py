"""Failures that an agent sends as if they were its answer: the turn would look completed, and nothing was done.

Matches only the exact sentences with which these programs were seen to end such a turn (goose 1.52, copilot 1.0.102).
Text that a model might write itself (`Error: 400 ...`, as Copilot passes on other failures) is an answer.
"""

import re

from portico.agents.acp.link import wants_sign_in
from portico.errors import AgentError, SignInRequired

CHARS = 4000
"""Of the last words of a turn: such a sentence is short."""
_FORMS = {
    "goose": re.compile(
        r"\s*Ran into this error: (.+?)\.?\s+Please retry if you think this is a transient or recoverable error\.\s*",
        re.DOTALL,
    ),
    "copilot": re.compile(
        r"\s*(?:Info: Request failed due to a transient API error\. Retrying\.\.\.\s*)*"
        r"Error: (Authentication failed with provider at \S+ \(HTTP \d+\).*?|"
        r"Failed to get response from the AI model; retried \d+ times \(total retry wait time: [\d.]+ seconds\) "
        r"Last error: .*?|Model '[^']*' not found on provider at \S+ \(HTTP 404\).*?)\.?\s*",
        re.DOTALL,
    ),
}


def failure(kind: str | None, name: str, words: str) -> AgentError | None:
    """What the last words of a turn mean; None: they are an answer. `kind`: which of the known agents speaks."""
    form = _FORMS.get(kind or "")
    found = form.fullmatch(words) if form is not None else None
    if found is None:
        return None
    problem = SignInRequired if wants_sign_in(found[1]) else AgentError
    return problem(f"{name}: {found[1]}.")
