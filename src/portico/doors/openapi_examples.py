"""Request bodies as examples in the OpenAPI document, by operation. A test checks them against their schemas."""

from typing import Any

EXAMPLES: dict[str, Any] = {
    "post_v1_sessions": {"agent": "loop", "cwd": "/home/me/project", "title": "Fix the test"},
    "post_v1_sessions_by_id_messages": {"text": "Fix the failing test in tests/test_app.py."},
    "patch_v1_sessions_by_id": {"title": "A better title"},
    "post_v1_sessions_by_id_fork": {"turn": "turn-3"},
    "post_v1_sessions_by_id_cancel": {},
    "post_v1_approvals_by_id": {"allow": True},
    "post_v1_questions_by_id": {"text": "red"},
    "post_v1_sessions_by_id_commit": {"message": "Fix the test", "state": None, "paths": ["src/app.py"]},
    "post_v1_jobs": {"job": "triage", "cwd": "/home/me/project", "inputs": {"title": "It crashes"}},
    "post_v1_tokens": {"name": "phone", "scopes": ["read", "approve"], "days": 30},
    "post_v1_automations": {
        "name": "nightly",
        "plan": {"schedule": {"cron": "0 3 * * *"}, "prompt": {"text": "Update the changelog."}},
    },
    "post_v1_commands": {"command": "session.rename", "arguments": {"session": "session-1", "title": "A title"}},
    "post_mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}
