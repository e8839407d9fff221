"""The session channel of the modern dialect."""

from typing import Any

import pytest

from portico.doors.ahp.wire.versions import Dialect
from tests.doors.ahp.fixtures import dialect, fold

Json = dict[str, Any]
V7, V8, V9, V10 = dialect("0.7.0"), dialect("0.8.0"), dialect("0.9.0"), dialect("1.0.0")


def session(*, status: int = 1, **fields: Any) -> Json:
    base = {"provider": "x", "title": "T", "status": status, "lifecycle": "ready", "activeClients": [], "chats": []}
    return {**base, **fields}


def after(spoken: Dialect, state: Json, kind: str, /, **payload: Any) -> Json:
    changed = fold("session", state, [{"type": f"session/{kind}", **payload}], spoken)
    assert isinstance(changed, dict)
    return changed


def summary(chat: str, **fields: Any) -> Json:
    return {"resource": chat, "title": "C", "status": 1, "modifiedAt": "x", **fields}


def test_ready_leaves_the_status_alone() -> None:
    assert after(V7, session(status=24 | 64, lifecycle="creating"), "ready") == session(status=24 | 64)


@pytest.mark.parametrize(("spoken", "lifecycle"), [(V7, "creationFailed"), (V8, "creationFailed"), (V9, "failed")])
def test_a_failed_creation_has_two_names(spoken: Dialect, lifecycle: str) -> None:
    failed = after(spoken, session(), "creationFailed", error={"message": "no"})
    assert failed == session(lifecycle=lifecycle, creationError={"message": "no"})


def test_the_catalogue_of_chats() -> None:
    one = after(V7, session(), "chatAdded", summary=summary("c"))
    two = after(V7, one, "chatAdded", summary=summary("d"))
    again = after(V7, two, "chatAdded", summary=summary("c", title="New"))
    assert again["chats"] == [summary("c", title="New"), summary("d")]
    updated = after(V7, two, "chatUpdated", chat="d", changes={"title": "D", "resource": "evil", "activity": "busy"})
    assert updated["chats"] == [summary("c"), summary("d", title="D", activity="busy")]
    idle = after(V7, updated, "chatUpdated", chat="d", changes={"activity": None})
    assert idle["chats"][1] == summary("d", title="D")
    chosen = after(V7, two, "defaultChatChanged", defaultChat="d")
    assert after(V7, chosen, "chatRemoved", chat="c")["defaultChat"] == "d"
    assert after(V7, chosen, "chatRemoved", chat="d") == session(chats=[summary("c")])


def test_chats_are_reordered_without_losing_any() -> None:
    before = session(chats=[summary(name) for name in "abc"])
    changed = after(V10, before, "chatsReordered", order=["c", "x", "a"])
    assert [chat["resource"] for chat in changed["chats"]] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("titleChanged", "title", "New"),
        ("activityChanged", "activity", "Thinking"),
        ("changesetsChanged", "changesets", [{"label": "x"}]),
        ("customizationsChanged", "customizations", [{"id": "x"}]),
        ("defaultChatChanged", "defaultChat", "c"),
        ("metaChanged", "_meta", {"a": 1}),
    ],
)
def test_fields_are_replaced(kind: str, field: str, value: Any) -> None:
    assert after(V7, session(), kind, **{field: value}) == session(**{field: value})


@pytest.mark.parametrize(
    ("kind", "field"), [("activityChanged", "activity"), ("changesetsChanged", "changesets"), ("metaChanged", "_meta")]
)
def test_fields_are_cleared(kind: str, field: str) -> None:
    assert after(V7, session() | {field: "x"}, kind) == session()


@pytest.mark.parametrize(
    ("kind", "field", "bit"), [("isReadChanged", "isRead", 32), ("isArchivedChanged", "isArchived", 64)]
)
def test_flags(kind: str, field: str, bit: int) -> None:
    future = 1 << 31
    assert after(V7, session(status=24 | future), kind, **{field: True})["status"] == 24 | bit | future
    assert after(V7, session(status=24 | bit | future), kind, **{field: False})["status"] == 24 | future


def test_several_clients_are_active() -> None:
    one = after(V7, session(), "activeClientSet", activeClient={"clientId": "a", "tools": []})
    two = after(V7, one, "activeClientSet", activeClient={"clientId": "b", "tools": []})
    assert [client["clientId"] for client in two["activeClients"]] == ["a", "b"]
    assert after(V7, one, "activeClientRemoved", clientId="a") == session()


def test_config() -> None:
    before = session(config={"schema": {}, "values": {"a": 1}})
    assert after(V7, before, "configChanged", config={"b": 2})["config"]["values"] == {"a": 1, "b": 2}
    assert after(V7, before, "configChanged", config={"b": 2}, replace=True)["config"]["values"] == {"b": 2}
    assert after(V7, session(), "configChanged", config={"b": 2}) == session()


def test_working_directories() -> None:
    before = session(workingDirectories=["a", "b", "c"])
    assert after(V7, before, "workingDirectorySet", directory="d")["workingDirectories"] == ["a", "b", "c", "d"]
    assert after(V7, before, "workingDirectoryRemoved", directory="b")["workingDirectories"] == ["a", "c"]


@pytest.mark.parametrize(
    ("directory", "replacement", "directories"),
    [
        ("b", "x", ["a", "x", "c"]),
        ("b", "a", ["a", "c"]),
        ("b", "c", ["a", "c"]),
        ("b", "b", ["a", "b", "c"]),
        ("z", "x", ["a", "b", "c"]),
    ],
)
def test_a_working_directory_is_replaced_in_place(directory: str, replacement: str, directories: list[str]) -> None:
    before = session(workingDirectories=["a", "b", "c"])
    changed = after(V8, before, "workingDirectoryReplaced", directory=directory, replacement=replacement)
    assert changed["workingDirectories"] == directories


def test_input_needed_follows_its_list() -> None:
    waiting = after(V7, session(status=1 | 32), "inputNeededSet", request={"id": "r", "kind": "chatInput"})
    assert waiting == session(status=24 | 32, inputNeeded=[{"id": "r", "kind": "chatInput"}])
    changed = after(V7, waiting, "inputNeededSet", request={"id": "r", "kind": "toolConfirmation"})
    assert changed["inputNeeded"] == [{"id": "r", "kind": "toolConfirmation"}]
    two = after(V7, waiting, "inputNeededSet", request={"id": "s", "kind": "toolAuthentication"})
    assert after(V7, two, "inputNeededRemoved", id="r")["status"] == 24 | 32
    assert after(V7, waiting, "inputNeededRemoved", id="r") == session(status=8 | 32)
    assert after(V7, waiting, "inputNeededRemoved", id="z") == waiting


def test_a_tool_that_a_client_runs_needs_nobody_since_0_8() -> None:
    request = {"id": "r", "kind": "toolClientExecution"}
    assert after(V7, session(status=8), "inputNeededSet", request=request)["status"] == 24
    assert after(V8, session(status=8), "inputNeededSet", request=request)["status"] == 8
    both = session(status=24, inputNeeded=[request, {"id": "s", "kind": "chatInput"}])
    assert after(V8, both, "inputNeededRemoved", id="s") == session(status=8, inputNeeded=[request])


CHILD = {"type": "skill", "id": "child", "uri": "u", "name": "n"}
SERVER = {"type": "mcpServer", "id": "server", "uri": "u", "name": "n", "enabled": True, "state": {"kind": "ready"}}
PLUGIN = {
    "type": "plugin",
    "id": "plugin",
    "uri": "u",
    "name": "n",
    "enabled": True,
    "children": [CHILD, {**SERVER, "id": "inner"}],
}


def customization_actions(*entries: Json) -> Json:
    return session(customizations=list(entries))


def test_a_customization_is_toggled_on_both_levels() -> None:
    before = customization_actions(PLUGIN, SERVER)
    assert after(V7, before, "customizationToggled", id="server", enabled=False) == customization_actions(
        PLUGIN, {**SERVER, "enabled": False}
    )
    toggled = after(V7, before, "customizationToggled", id="child", enabled=False)
    assert toggled["customizations"][0]["children"][0] == {**CHILD, "enabled": False}
    assert after(V7, before, "customizationToggled", id="none", enabled=False) == before
    assert after(V7, session(), "customizationToggled", id="plugin", enabled=False) == session()


def test_the_top_level_is_searched_first() -> None:
    twin = {**CHILD, "id": "server"}
    before = customization_actions({**PLUGIN, "children": [twin]}, SERVER)
    changed = after(V7, before, "customizationToggled", id="server", enabled=False)
    assert changed == customization_actions({**PLUGIN, "children": [twin]}, {**SERVER, "enabled": False})


def test_since_0_8_a_toggle_replaces_the_decisions() -> None:
    before = customization_actions({**PLUGIN, "enablement": [{"kind": "global", "enabled": True}]})
    decisions = [{"kind": "session", "enabled": False}]
    changed = after(V8, before, "customizationToggled", id="plugin", enablement=decisions)
    assert changed == customization_actions({**PLUGIN, "enablement": decisions})
    cleared = after(V8, changed, "customizationToggled", id="plugin", enablement=[])
    assert cleared == customization_actions({**PLUGIN, "enablement": []})


def test_a_customization_is_updated_and_removed() -> None:
    before = customization_actions(PLUGIN)
    assert after(V7, before, "customizationUpdated", customization=SERVER) == customization_actions(PLUGIN, SERVER)
    bare = {key: value for key, value in PLUGIN.items() if key != "children"}
    assert after(V7, before, "customizationUpdated", customization=bare) == customization_actions(bare)
    assert after(
        V7, customization_actions(PLUGIN, SERVER), "customizationRemoved", id="plugin"
    ) == customization_actions(SERVER)
    assert after(V7, customization_actions(SERVER), "customizationRemoved", id="server") == session(customizations=[])
    assert after(V7, session(), "customizationRemoved", id="server") == session()


@pytest.mark.parametrize(
    ("kind", "state"),
    [("mcpServerStartRequested", {"kind": "starting"}), ("mcpServerStopRequested", {"kind": "stopped"})],
)
def test_a_server_is_asked_to_start_or_stop(kind: str, state: Json) -> None:
    before = customization_actions({**SERVER, "channel": "mcp://x"})
    assert after(V7, before, kind, id="server") == customization_actions({**SERVER, "state": state})
    inner = after(V7, customization_actions(PLUGIN), kind, id="inner")
    assert inner["customizations"][0]["children"][1]["state"] == state
    assert after(V7, customization_actions(PLUGIN), kind, id="child") == customization_actions(PLUGIN)


def test_the_state_of_a_server_comes_with_its_channel() -> None:
    starting = {**SERVER, "state": {"kind": "starting"}}
    ready = after(
        V7,
        customization_actions(starting),
        "mcpServerStateChanged",
        id="server",
        state={"kind": "ready"},
        channel="mcp://x",
    )
    assert ready == customization_actions({**SERVER, "channel": "mcp://x"})
    stopped = after(V7, ready, "mcpServerStateChanged", id="server", state={"kind": "error", "error": {}})
    assert stopped == customization_actions({**SERVER, "state": {"kind": "error", "error": {}}})


def test_a_starting_server_goes_to_the_background() -> None:
    starting = {**SERVER, "state": {"kind": "starting", "blocking": True}}
    changed = after(V10, customization_actions(starting), "mcpServerBackgroundRequested", id="server")
    assert changed == customization_actions({**SERVER, "state": {"kind": "starting", "blocking": False}})
    assert after(
        V10, customization_actions(SERVER), "mcpServerBackgroundRequested", id="server"
    ) == customization_actions(SERVER)
