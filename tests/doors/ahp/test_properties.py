"""What holds for every state and every sequence of actions."""

import copy
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from portico.doors.ahp.wire.actions import ACTIONS, SEED_ACTIONS
from portico.doors.ahp.wire.versions import SEED, SUPPORTED, Dialect
from portico.testing.ahp.reducer import Channel, reduce
from portico.testing.ahp.toolcall import WAITING
from tests.doors.ahp.fixtures import dialect

Json = dict[str, Any]
FUTURE = 1 << 31

# Mostly the same, so that actions find what earlier ones made.
IDS = st.sampled_from(["a", "a", "b", "c"])
TEXT = st.text(max_size=5)
MESSAGE = st.fixed_dictionaries({"text": TEXT})
TIMES = st.sampled_from(["2026-01-01T00:00:00.000Z", "nonsense"])
OPTIONS = st.lists(st.fixed_dictionaries({"id": IDS, "label": TEXT, "kind": st.just("approve")}), max_size=2)
CONTENT = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2)
RESULT = st.fixed_dictionaries(
    {"success": st.booleans(), "pastTenseMessage": TEXT}, optional={"content": CONTENT, "novel": st.integers()}
)
PART = st.fixed_dictionaries(
    {"kind": st.sampled_from(["markdown", "reasoning", "contentRef", "error", "hologram"])},
    optional={"id": IDS, "content": TEXT},
)
TURN = st.fixed_dictionaries({"id": IDS, "message": MESSAGE, "responseParts": st.lists(PART, max_size=2)})
RECORD = st.fixed_dictionaries(
    {"id": IDS},
    optional={
        "resource": IDS,
        "clientId": IDS,
        "kind": st.sampled_from(["chatInput", "toolClientExecution"]),
        "type": st.sampled_from(["plugin", "mcpServer", "skill"]),
        "state": st.fixed_dictionaries({"kind": st.sampled_from(["starting", "ready"])}),
        "children": st.lists(st.fixed_dictionaries({"id": IDS, "type": st.just("mcpServer")}), max_size=2),
        "entries": st.lists(st.fixed_dictionaries({"id": IDS, "text": TEXT}), max_size=2),
        "answers": st.dictionaries(IDS, st.just({"state": "skipped"}), max_size=2),
        "customization": st.fixed_dictionaries({"uri": IDS}),
    },
)
RECORDS = st.lists(RECORD, max_size=2)
MAP = st.dictionaries(IDS, st.integers(), max_size=2)


def each(names: str, strategy: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    return dict.fromkeys(names.split(), strategy)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **each("turnId partId toolCallId requestId questionId id queuedMessageId selectedOptionId clientId chat uri", IDS),
    **each("commandId annotationId entryId fileId operationId session defaultChat primarySession", IDS),
    **each("directory replacement", IDS),
    **each("userMessage message draft userSuggestion", MESSAGE),
    **each("content data title displayName toolName activity invocationMessage toolInput editedToolInput", TEXT),
    **each("reason response cwd status commandLine turnsNextCursor resource", TEXT),
    **each("approved isRead isArchived replace requiresResultConfirmation enabled reviewed", st.booleans()),
    **each("agents terminals tools customizations changesets operations diffs", RECORDS),
    **each("config changes usage error auth _meta claim lifecycle", MAP),
    **each("request activeClient summary customization annotation entry file work automation", RECORD),
    **each("exitCode cols rows activeSessions durationMs timestamp", st.integers(0, 9)),
    "duration": st.integers(-5, 5000) | st.floats(0, 10, allow_nan=False),
    "kind": st.sampled_from(["steering", "queued", "telepathic"]),
    "confirmed": st.sampled_from(["not-needed", "user-action", "unheard-of"]),
    "contributor": st.fixed_dictionaries({"kind": st.sampled_from(["mcp", "client", "oracle"])}),
    "startedAt": TIMES,
    "part": PART,
    "turns": st.lists(TURN, max_size=2),
    "order": st.lists(IDS, max_size=4),
    "options": OPTIONS,
    "result": RESULT,
    "answer": st.just({"state": "skipped"}),
    "answers": st.dictionaries(IDS, st.just({"state": "skipped"}), max_size=2),
    "state": st.fixed_dictionaries({"kind": st.sampled_from(["starting", "ready", "stopped"])}),
    "channel": st.just("mcp://x"),
}
# In these the generic field of the same name has another type.
LISTED: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "toolCallContentChanged": {"content": CONTENT},
    "filesReviewChanged": {"files": st.lists(IDS, max_size=3)},
    "contentChanged": {"files": RECORDS},
}


USUAL = ("turnId", "toolCallId", "id", "requestId", "partId", "result", "approved", "message", "userMessage")


@st.composite
def actions(draw: st.DrawFn, types: list[str]) -> Json:
    """An action of a known type with fields of the right types, any of which may be missing."""
    kind = draw(st.sampled_from(types))
    fields = FIELDS | LISTED.get(kind.split("/")[1], {})
    names = {*draw(st.lists(st.sampled_from(sorted(fields)), max_size=6)), *draw(st.sampled_from([USUAL, USUAL, ()]))}
    return {"type": kind, **{name: draw(fields[name]) for name in sorted(names)}}


def initial(channel: str, spoken: Dialect) -> Json:
    """A state in the middle of things: a turn runs, one tool call waits, another runs, a third streams."""
    known = {"novel": {"kept": True}}
    state: Json = {**known, "turns": [], "content": [], "files": [], "config": {"schema": {}, "values": {}}}
    if channel not in ("session", "chat"):
        return state
    calls: list[Json] = [
        {"status": "pending-confirmation", "toolCallId": "a", "toolInput": "x", "options": [{"id": "a"}]},
        {"status": "running", "toolCallId": "b", "confirmed": "setting", "contributor": {"kind": "mcp"}},
        {"status": "streaming", "toolCallId": "c", **known},
    ]
    parts: list[Json] = [{"kind": "toolCall", "toolCall": call} for call in calls]
    parts.append({"kind": "inputRequest", "request": {"id": "a"}})
    turn = {"id": "a", "startedAt": "2026-01-01T00:00:00.000Z", spoken.message: {"text": "x"}, "responseParts": parts}
    state |= {"activeTurn": {**turn, **known}}
    if spoken.seed:
        return {**state, "summary": {"status": 24 | FUTURE, "modifiedAt": 0, **known}}
    return {**state, "status": 24 | FUTURE}


@st.composite
def histories(draw: st.DrawFn) -> tuple[Channel, Dialect, list[Json]]:
    spoken = dialect(draw(st.sampled_from([SEED, *SUPPORTED])))
    known = SEED_ACTIONS if spoken.seed else ACTIONS
    names = sorted({action.split("/")[0] for action in known})
    channel = draw(st.sampled_from([*names, *["session" if spoken.seed else "chat"] * 4]))
    types = sorted(action for action in known if action.startswith(f"{channel}/"))
    if spoken.seed and channel == "session":
        types.remove("session/ready")  # the one action that resets every bit of the status
    history = draw(st.lists(actions([*types, f"{channel}/unheardOf"]), min_size=1, max_size=12))
    return channel, spoken, history  # type: ignore[return-value]  # the names are those of Channel


@settings(max_examples=300)
@given(histories())
def test_any_history_folds_without_a_trace_on_its_input(history: tuple[Channel, Dialect, list[Json]]) -> None:
    channel, spoken, steps = history
    state = initial(channel, spoken)
    for action in steps:
        before = copy.deepcopy((state, action))
        after = reduce(channel, state, action, spoken)
        assert (state, action) == before
        state = after
    assert state["novel"] == {"kept": True}
    if channel in ("session", "chat"):
        consistent(state)


def consistent(state: Json) -> None:
    """Flags of the future survive, the activity is exactly one, and history holds no open tool call."""
    status = state.get("summary", state)["status"]
    assert status & FUTURE
    assert status & 0b11111 in (1, 2, 8, 24)
    finished = [part for turn in state["turns"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
    assert all(part["toolCall"]["status"] not in {*WAITING, "running", "streaming"} for part in finished)


@given(st.sampled_from(get_args(Channel)), st.sampled_from([SEED, *SUPPORTED]), st.text(), st.dictionaries(TEXT, TEXT))
def test_an_unknown_action_returns_the_state_itself(channel: Channel, version: str, kind: str, state: Json) -> None:
    assert reduce(channel, state, {"type": f"future/{kind}"}, dialect(version)) is state
    assert reduce(channel, state, {}, dialect(version)) is state


@given(st.lists(TEXT, max_size=6), st.sampled_from([SEED, *SUPPORTED]))
def test_deltas_may_be_joined(chunks: list[str], version: str) -> None:
    """Coalescing is allowed only because the reduced state is the same."""
    spoken = dialect(version)
    channel: Channel = "session" if spoken.seed else "chat"
    turn = {"id": "t", "responseParts": [{"kind": "markdown", "id": "m", "content": ""}]}
    state: Json = {"turns": [], "activeTurn": turn, "status": 8, "summary": {"status": 8}}

    def delta(content: str) -> Json:
        return {"type": f"{channel}/delta", "turnId": "t", "partId": "m", "content": content}

    apart = state
    for chunk in chunks:
        apart = reduce(channel, apart, delta(chunk), spoken)
    assert apart == reduce(channel, state, delta("".join(chunks)), spoken)


@given(st.dictionaries(st.text(min_size=1), st.integers(), max_size=3))
def test_unknown_fields_of_a_tool_call_survive_its_whole_life(extra: Json) -> None:
    extra = {f"x-{key}": value for key, value in extra.items()}
    spoken = dialect("0.7.0")
    call = {"status": "streaming", "toolCallId": "c", "toolName": "n", "displayName": "N", **extra}
    turn = {"id": "t", "responseParts": [{"kind": "toolCall", "toolCall": call, **extra}]}
    state: Json = {"turns": [], "activeTurn": {**turn, **extra}, "status": 8}
    for kind, payload in (
        ("toolCallReady", {"invocationMessage": "m"}),
        ("toolCallConfirmed", {"approved": True, "confirmed": "user-action"}),
        ("toolCallComplete", {"result": {"success": True, "pastTenseMessage": "p"}}),
        ("turnComplete", {"duration": 1}),
    ):
        state = reduce("chat", state, {"type": f"chat/{kind}", "turnId": "t", "toolCallId": "c", **payload}, spoken)
    turn = state["turns"][0]
    part = turn["responseParts"][0]
    assert part["toolCall"]["status"] == "completed"
    assert all(extra.items() <= holder.items() for holder in (turn, part, part["toolCall"]))
