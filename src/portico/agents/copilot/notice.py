"""Notices for a person from Copilot's events: retries, warnings, a conversation that was compacted."""

from typing import Any

import msgspec
from copilot import session_events as s

REASON_CHARS = 300
"""Limit for a vendor's error message."""
_TOLD_ELSEWHERE = "model_retry"
"""Reported with the retry itself."""
_LEFT_OUT = {s.McpServerStatus.FAILED: "no reason given", s.McpServerStatus.NEEDS_AUTH: "it wants a sign-in"}


def notice_of(data: object) -> str:
    """Return the text of a notice; empty for events that need none."""
    match data:
        case s.SessionInfoData():
            return "" if data.info_type == _TOLD_ELSEWHERE else data.message
        case s.SessionWarningData():
            return data.message
        case s.SessionCompactionStartData():
            return "The conversation is long; Copilot compacts it."
        case s.SessionCompactionCompleteData():
            return _compacted(data)
        case s.SessionTruncationData():
            return f"Copilot left out {data.messages_removed_during_truncation:g} older messages: no room for them."
        case s.SessionMcpServerStatusChangedData():
            return _left_out(data)
    return ""


def _compacted(data: s.SessionCompactionCompleteData) -> str:
    if not data.success:
        return f"The conversation could not be compacted: {data.error or 'no reason given'}."
    before, after = data.pre_compaction_tokens, data.post_compaction_tokens
    numbers = f" from {before:g} to {after:g} tokens" if before and after else ""
    return f"The conversation was compacted{numbers}."


def _left_out(data: s.SessionMcpServerStatusChangedData) -> str:
    """Copilot itself does not report this: its model just has fewer tools."""
    if data.status not in _LEFT_OUT:
        return ""
    reason = _reason(data.error or _LEFT_OUT[data.status])
    return f"The MCP server {data.server_name!r} is left out: {reason}."


def failure_words(data: s.ModelCallFailureData) -> str:
    status = f" ({data.status_code:g})" if data.status_code else ""
    reason = _reason(data.error_message or data.error_code or "")
    return f"The model did not answer{status}{f': {reason}' if reason else ''}."


def _reason(text: str) -> str:
    """Return the error message. If the text is JSON, only its `message`."""
    try:
        found: Any = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        found = text
    if isinstance(found, dict):
        found = found.get("message") or text
    return str(found).strip().rstrip(".")[:REASON_CHARS]
