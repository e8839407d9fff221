"""Tools that agents hide behind a search (Codex, Qwen, Claude): the model looks for one before it calls it.

A step calls a tool by a pattern; where nothing that is declared fits and there is a search, the search is made first,
and the same step answers the next request.
"""

import re

from portico.testing.model.request import ModelRequest
from portico.testing.model.script import ScriptedCall
from portico.testing.model.tools import ToolChoice

SEARCHES = ("tool_search", "ToolSearch")
BRIDGE = "tool_call"
"""What calls a tool that was found but is still not declared (Qwen)."""
_WORD = re.compile(r"\w{3,}")
_NAME = re.compile(r'"name":\s*"([\w.-]+)"')


def look_for(call: ScriptedCall, request: ModelRequest) -> ToolChoice | None:
    """Once in a turn for one step: what it did not find is not there."""
    name = next((tool.name for tool in request.tools if tool.name in SEARCHES), None)
    words = _WORD.findall(call.match)
    if name is None or not words or request.searched:
        return None
    return ToolChoice(name, {"query": " ".join(words)})


def call_found(call: ScriptedCall, request: ModelRequest) -> ToolChoice | None:
    if not call.match or all(tool.name != BRIDGE for tool in request.tools):
        return None
    found = [name for name in _NAME.findall(request.result) if re.fullmatch(call.match, name)]
    return ToolChoice(BRIDGE, {"name": found[0], "arguments": call.args}) if found else None
