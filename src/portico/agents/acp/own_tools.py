"""The session's own tools in the updates of an ACP agent: one call, although it is reported twice.

The agent calls them over MCP, where the call is created and shown; the agent's own report of the same call is hidden.
Only a call that asks for permission is shown from that moment, and is matched when it arrives over MCP with the input
that was shown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from portico.agents.agent import Call, Json
from portico.agents.attachment import text_of
from portico.agents.servers import SESSION_SERVER


class OwnTools:
    def __init__(self, names: Iterable[str], server: str = SESSION_SERVER) -> None:
        """`server`: the name under which the agent knows our tool server."""
        self._names = {name: re.compile(_form(re.escape(server), re.escape(name))) for name in names}
        self._known: dict[str, str] = {}
        self._shown: list[tuple[Call, Any]] = []
        self._performed: Counter[str] = Counter()
        self._told: dict[str, Any] = {}
        """The input of each call that was reported and has not ended, by its id."""

    def name(self, update: Json) -> str | None:
        """Which of the session's tools this is about. Later updates of a call need not name it again."""
        ident = str(update.get("toolCallId"))
        if ident not in self._known:
            words = list(_words(update))
            for name, form in self._names.items():
                if any(form.fullmatch(word) for word in words):
                    self._known[ident] = name
        return self._known.get(ident)

    def hides(self, update: Json) -> bool:
        """Whether the update is reported over MCP, now or soon. A failure that never reached us is shown."""
        name, status = self.name(update), update.get("status")
        if name is None:
            return False
        ident, given = str(update.get("toolCallId")), input_of(update)
        if status in ("completed", "failed"):
            self._told.pop(ident, None)
            if status == "failed" and not self._performed[name]:
                return False
            self._performed[name] -= 1
        elif given is not None:
            self._told[ident] = given
        return True

    def expects(self, name: str, arguments: Json) -> bool:
        """Whether exactly this call was announced and has not arrived over MCP yet."""
        told = [given for ident, given in self._told.items() if self._known[ident] == name]
        shown = [given for call, given in self._shown if call.tool == name and not call.done]
        return arguments in shown or (arguments in told and len(told) > self._performed[name])

    def is_without_input(self, update: Json) -> bool:
        """A permission request for one of these tools that does not contain its input (opencode). It is shown, and
        asks if it must, when it arrives over MCP with its input."""
        known = self._told.get(str(update.get("toolCallId")))
        return self.name(update) is not None and not (input_of(update) or known)

    def show(self, call: Call, update: Json) -> str:
        """Show a call that asks for permission; returns its input as JSON. Codex sends the input only before asking."""
        told = self._told.pop(str(update.get("toolCallId")), None)
        given = told if (named := input_of(update)) is None else named
        self._shown.append((call, given))
        return msgspec.json.encode(given if given is not None else {}).decode()

    def arrived(self, name: str, arguments: Json) -> Call | None:
        """Return the call that was shown and allowed with exactly this input, if any."""
        self._performed[name] += 1
        for index, (call, given) in enumerate(self._shown):
            if call.tool == name and not call.done and given == arguments:
                del self._shown[index]
                return call
        return None


def _form(server: str, name: str) -> str:
    """How agents write the name of a tool of ours."""
    return rf"(?:Tool: |functions\.)?(?:mcp[_\-.]+)?(?:{server}[_\-:/.]+)?{name}(?:\(\))?(?: \({server} MCP Server\))?"


def _words(update: Json) -> Iterator[str]:
    yield str(update.get("title") or "")
    yield from tool_names(update.get("_meta"))
    given = update.get("rawInput")
    if isinstance(given, dict) and {"server", "tool"} <= given.keys():  # Codex: a call inside a call
        yield f"{given['server']}/{given['tool']}"


def tool_names(meta: Any) -> Iterator[str]:
    """Yield the agent's own name of the tool from any place in its metadata."""
    if isinstance(meta, dict):
        for key, value in meta.items():
            if key == "toolName" and isinstance(value, str):
                yield value
            yield from tool_names(value)


def input_of(update: Json) -> Any:
    """From its field, or (Gemini) as the JSON text that is shown to people."""
    given = update.get("rawInput")
    if isinstance(given, dict) and {"server", "tool", "arguments"} <= given.keys():
        return given["arguments"]
    if given is not None:
        return given
    content = update.get("content")
    for piece in content if isinstance(content, list) else []:
        try:
            return msgspec.json.decode(text_of(piece.get("content")))
        except (ValueError, RecursionError, AttributeError):
            continue
    return None
