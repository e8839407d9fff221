"""Root, terminal, changeset, annotations, resource watch and automations."""

from typing import Any

import pytest

from portico.doors.ahp.wire.versions import Dialect
from tests.doors.ahp.fixtures import V1, dialect, fold

Json = dict[str, Any]
V7, V9 = dialect("0.7.0"), dialect("0.9.0")
BOTH = pytest.mark.parametrize("spoken", [V1, V7, V9], ids=["1", "0.7.0", "0.9.0"])
CLAIM = {"kind": "client", "clientId": "c"}


def after(spoken: Dialect, state: Json, kind: str, /, **payload: Any) -> Json:
    changed = fold(kind.split("/")[0], state, [{"type": kind, **payload}], spoken)  # type: ignore[arg-type]
    assert isinstance(changed, dict)
    return changed


def terminal(*content: Json, **fields: Any) -> Json:
    return {"title": "sh", "claim": CLAIM, "content": list(content), **fields}


def text(value: str) -> Json:
    return {"type": "unclassified", "value": value}


def command(name: str, output: str = "", **fields: Any) -> Json:
    base = {"type": "command", "commandId": name, "commandLine": "ls", "output": output, "timestamp": 5}
    return {**base, "isComplete": False, **fields}


@BOTH
def test_root(spoken: Dialect) -> None:
    before: Json = {"agents": [], "config": {"schema": {}, "values": {"a": 1}}}
    assert after(spoken, before, "root/agentsChanged", agents=[{"provider": "x"}])["agents"] == [{"provider": "x"}]
    assert after(spoken, before, "root/activeSessionsChanged", activeSessions=0)["activeSessions"] == 0
    assert after(spoken, before, "root/terminalsChanged", terminals=[])["terminals"] == []
    assert after(spoken, before, "root/configChanged", config={"b": 2})["config"]["values"] == {"a": 1, "b": 2}
    assert after(spoken, before, "root/configChanged", config={}, replace=True)["config"]["values"] == {}
    assert after(spoken, {"agents": []}, "root/configChanged", config={"b": 2}) == {"agents": []}


@BOTH
def test_output_goes_to_the_tail(spoken: Dialect) -> None:
    assert after(spoken, terminal(), "terminal/data", data="a") == terminal(text("a"))
    assert after(spoken, terminal(text("a")), "terminal/data", data="b") == terminal(text("ab"))
    assert after(spoken, terminal(text("a"), command("1", "x")), "terminal/data", data="y") == terminal(
        text("a"), command("1", "xy")
    )
    finished = command("1", "x", isComplete=True)
    assert after(spoken, terminal(finished), "terminal/data", data="y") == terminal(finished, text("y"))
    future = {"type": "image", "data": "…"}
    assert after(spoken, terminal(future), "terminal/data", data="y") == terminal(future, text("y"))


@BOTH
def test_commands(spoken: Dialect) -> None:
    executed = after(spoken, terminal(), "terminal/commandExecuted", commandId="1", commandLine="ls", timestamp=5)
    assert executed == terminal(command("1"), supportsCommandDetection=True)
    finished = after(spoken, executed, "terminal/commandFinished", commandId="1", exitCode=2, durationMs=3)
    assert finished["content"] == [command("1", isComplete=True, exitCode=2, durationMs=3)]
    assert after(spoken, executed, "terminal/commandFinished", commandId="1")["content"] == [
        command("1", isComplete=True)
    ]
    assert after(spoken, executed, "terminal/commandFinished", commandId="9") == executed
    available = after(spoken, terminal(), "terminal/commandDetectionAvailable")
    assert available == terminal(supportsCommandDetection=True)


@BOTH
def test_terminal_fields(spoken: Dialect) -> None:
    assert after(spoken, terminal(), "terminal/resized", cols=1, rows=2) == terminal(cols=1, rows=2)
    claim = {"kind": "session", "session": "s"}
    assert after(spoken, terminal(), "terminal/claimed", claim=claim) == terminal(claim=claim)
    assert after(spoken, terminal(), "terminal/titleChanged", title="vim") == terminal(title="vim")
    assert after(spoken, terminal(), "terminal/cwdChanged", cwd="file:///") == terminal(cwd="file:///")
    assert after(spoken, terminal(text("a"), command("1")), "terminal/cleared") == terminal()
    assert after(spoken, terminal(text("a")), "terminal/input", data="ls") == terminal(text("a"))


def test_an_exit_is_a_code_up_to_0_8_and_a_lifecycle_later() -> None:
    assert after(V1, terminal(), "terminal/exited", exitCode=0) == terminal(exitCode=0)
    assert after(V7, terminal(), "terminal/exited", exitCode=3) == terminal(exitCode=3)
    assert after(V7, terminal(exitCode=3), "terminal/exited") == terminal()
    assert after(V9, terminal(), "terminal/exited", exitCode=3) == terminal(
        lifecycle={"status": "exited", "exitCode": 3}
    )
    alive = terminal(lifecycle={"status": "running"})
    assert after(V9, alive, "terminal/exited") == terminal(lifecycle={"status": "exited"})
    both = {"lifecycle": {"status": "exited", "exitCode": 3}, "exitCode": 3}
    assert after(V7, alive, "terminal/exited", exitCode=3) == terminal(**both)


def changeset(*files: Json, **fields: Any) -> Json:
    return {"status": "ready", "files": list(files), **fields}


def test_changeset_status() -> None:
    failed = after(V7, changeset(), "changeset/statusChanged", status="error", error={"message": "x"})
    assert failed == changeset(status="error", error={"message": "x"})
    assert after(V7, failed, "changeset/statusChanged", status="ready") == changeset()
    assert after(V7, changeset(), "changeset/statusChanged", status="recomputing") == changeset(status="recomputing")


def test_changeset_files() -> None:
    a, b = {"id": "a", "edit": {}}, {"id": "b", "edit": {}, "_meta": {"x": 1}}
    assert after(V7, changeset(a), "changeset/fileSet", file=b) == changeset(a, b)
    assert after(V7, changeset(a, b), "changeset/fileSet", file={**a, "reviewed": True}) == changeset(
        {**a, "reviewed": True}, b
    )
    assert after(V7, changeset(a, b), "changeset/fileRemoved", fileId="a") == changeset(b)
    reviewed = after(V7, changeset(a, b), "changeset/filesReviewChanged", files=["b", "z"], reviewed=True)
    assert reviewed == changeset(a, {**b, "reviewed": True})
    assert after(V7, changeset(a), "changeset/filesReviewChanged", files=["z"], reviewed=True) == changeset(a)
    assert after(V7, changeset(a, operations=[]), "changeset/cleared") == changeset(operations=[])
    assert after(V7, changeset(), "changeset/cleared") == changeset()


def test_changeset_operations() -> None:
    commit = {"id": "commit", "label": "Commit", "scopes": ["changeset"], "status": "idle"}
    before = changeset(operations=[commit])
    failed = after(V7, before, "changeset/operationStatusChanged", operationId="commit", status="error", error={"m": 1})
    assert failed == changeset(operations=[{**commit, "status": "error", "error": {"m": 1}}])
    assert after(V7, failed, "changeset/operationStatusChanged", operationId="commit", status="idle") == before
    assert after(V7, before, "changeset/operationsChanged") == changeset()
    assert after(V7, changeset(), "changeset/operationStatusChanged", operationId="x", status="idle") == changeset()


def test_the_whole_content_of_a_changeset() -> None:
    before = changeset({"id": "old"}, operations=[{"id": "o"}])
    assert after(V7, before, "changeset/contentChanged", files=[]) == changeset(operations=[{"id": "o"}])
    assert after(V7, before, "changeset/contentChanged", files=[], operations=[]) == changeset(operations=[])
    failed = changeset(status="error", error={"m": 1})
    assert after(V9, failed, "changeset/contentChanged", files=[], error={"m": 2}) == failed


def annotation(name: str, *entries: Json, **fields: Any) -> Json:
    return {"id": name, "turnId": "t", "resource": "file:///a", "resolved": False, "entries": list(entries), **fields}


def noted(*annotations: Json) -> Json:
    return {"annotations": list(annotations)}


def test_annotations() -> None:
    first, second = {"id": "1", "text": "a"}, {"id": "2", "text": "b"}
    before = noted(annotation("x", first))
    assert after(V7, noted(), "annotations/set", annotation=annotation("x", first)) == before
    assert after(V7, before, "annotations/set", annotation=annotation("y")) == noted(
        annotation("x", first), annotation("y")
    )
    two = after(V7, before, "annotations/entrySet", annotationId="x", entry=second)
    assert two == noted(annotation("x", first, second))
    assert after(V7, two, "annotations/entryRemoved", annotationId="x", entryId="1") == noted(annotation("x", second))
    assert after(V7, two, "annotations/entryRemoved", annotationId="x", entryId="9") == two
    assert after(V7, two, "annotations/entryRemoved", annotationId="z", entryId="1") == two
    assert after(V7, before, "annotations/removed", annotationId="x") == noted()
    moved = after(V7, before, "annotations/updated", annotationId="x", resolved=True, entries=[], id="y", _meta={})
    assert moved == noted(annotation("x", first, resolved=True))


def test_since_0_9_an_annotation_has_an_origin() -> None:
    changed = after(V9, noted(annotation("x")), "annotations/updated", annotationId="x", origin={"session": "s"})
    assert changed == noted(annotation("x", origin={"session": "s"}))


def test_a_watch_never_changes() -> None:
    watch = {"root": "file:///", "recursive": True}
    assert after(V7, watch, "resourceWatch/changed", changes={"items": []}) == watch


def test_automations() -> None:
    one, other = {"resource": "a", "name": "A"}, {"resource": "b", "name": "B"}
    catalogue = after(V9, {"entries": [one]}, "automation/set", automation=other)
    assert catalogue == {"entries": [one, other]}
    renamed = after(V9, catalogue, "automation/set", automation={**one, "name": "Z"})
    assert renamed == {"entries": [{**one, "name": "Z"}, other]}
    assert after(V9, catalogue, "automation/removed", resource="a") == {"entries": [other]}
    for request in ("automation/createRequested", "automation/updateRequested"):
        assert after(V9, catalogue, request, automation=one) == catalogue


def test_an_automation_run() -> None:
    run: Json = {"lifecycle": {"status": "running"}, "sessions": []}
    assert after(V9, run, "automationRun/lifecycleChanged", lifecycle={"status": "done"})["lifecycle"] == {
        "status": "done"
    }
    one = after(V9, run, "automationRun/sessionSet", session={"resource": "s"})
    assert after(V9, one, "automationRun/sessionSet", session={"resource": "s", "x": 1})["sessions"] == [
        {"resource": "s", "x": 1}
    ]
    assert after(V9, one, "automationRun/sessionRemoved", session="s") == run
    plain = after(V9, run, "automationRun/sessionSet", session="s")
    assert after(V9, plain, "automationRun/sessionSet", session="s")["sessions"] == ["s"]
    assert after(V9, plain, "automationRun/sessionRemoved", session="s") == run
    chosen = after(V9, run, "automationRun/primarySessionChanged", primarySession="s")
    assert chosen["primarySession"] == "s"
    assert after(V9, chosen, "automationRun/primarySessionChanged") == run
    assert after(V9, run, "automationRun/cancelRequested") == run
