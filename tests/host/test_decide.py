"""Approvals and grants as pure decisions: properties over state and command, without a host."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico import limits as all_limits
from portico.features.approvals.commands import AddGrant, ConfigureHost, RevokeGrant
from portico.features.people.commands import ShareSession, UnshareSession
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.command_turn import COMMAND_LINE
from portico.kernel.decide import decide
from portico.kernel.decide.approval import OPTIONS, TIMEOUT
from portico.kernel.decide.decision import Context, HostState, Outcome
from portico.kernel.decide.turn import start_next
from portico.kernel.errors import AlreadyAnswered, BadRequest, Conflict, Forbidden, NotFound, PorticoError, RateLimited
from portico.kernel.events import Grant, Message, Option, Record
from portico.kernel.fold import fold
from portico.kernel.state import SessionState

ADA = c.Caller("token-1", "ada", frozenset(c.SCOPES))
HOST = HostState(frozenset({"play"}), now=1_000, next_grant="grant-7")
ALWAYS = [*OPTIONS, Option("always", "In this project", True, "project"), Option("never", "Never", False, "project")]


def apply(state: SessionState, *events: e.Event) -> SessionState:
    for event in events:
        fold(state, Record(state.pos + 1, "session/s", state.pos + 1, 0, e.encode(event), event))
    return state


def asked(**given: Any) -> SessionState:
    """A session whose turn waits for an approval."""
    approval = {"tool": "shell", "title": "make", "kind": "shell", "input": "{}", "expires": 0, "options": ALWAYS}
    return apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.TurnStarted(turn="t1", message=Message("go"), by="ada"),
        e.ToolStarted(turn="t1", call="c1", tool="shell"),
        e.ApprovalAsked(turn="t1", approval="s.a1", call="c1", **{**approval, **given}),
    )


def context(**given: Any) -> Context:
    return Context(ADA, str, **{"found": ["command:make all"], "shared": HOST, **given})


def answer(**given: Any) -> c.AnswerApproval:
    return c.AnswerApproval(approval="s.a1", **given)


ANSWERS = st.builds(
    answer,
    allow=st.none() | st.booleans(),
    option=st.none() | st.sampled_from([*(each.id for each in ALWAYS), "nosuch"]),
    input=st.none() | st.just("{}"),
)


@given(st.lists(ANSWERS, max_size=6), st.booleans())
def test_the_first_valid_answer_wins(answers: list[c.AnswerApproval], editable: bool) -> None:
    """One answer, at most one grant, and one line in the audit record; a refusal changes nothing."""
    state, accepted = asked(editable=editable), list[Outcome]()
    for each in answers:
        try:
            decision = decide(state, each, context())
        except AlreadyAnswered:
            assert accepted
            continue
        except BadRequest:
            continue
        assert not accepted
        accepted.append(decision)
        apply(state, *decision.events)
    for decision in accepted:
        [answered] = decision.events
        assert isinstance(answered, e.ApprovalAnswered)
        chosen = next(each for each in ALWAYS if each.id == answered.option)
        granted = [event.grant for event in decision.host_events if isinstance(event, e.GrantAdded)]
        assert [grant.covers for grant in granted] == ([] if chosen.grant == "once" else [["command:make all"]])
        assert [(grant.session, grant.project) for grant in granted] == {
            "once": [],
            "session": [("s", None)],
            "project": [(None, "/work")],
        }[chosen.grant]
        assert all(grant.allow is answered.allowed for grant in granted)
        assert isinstance(decision.host_events[-1], e.Audited)


@pytest.mark.parametrize(
    ("command", "given", "error"),
    [
        (answer(allow=True), {"withdrawn": True}, Conflict),
        (answer(), {}, BadRequest),
        (answer(option="deny", allow=True), {}, BadRequest),
        (answer(allow=True, input="{}"), {}, BadRequest),
        (c.AnswerApproval(approval="s.a9", allow=True), {}, NotFound),
        (answer(option="always"), {"shared": HostState(now=1)}, NotFound),
    ],
)
def test_an_answer_is_refused(command: c.AnswerApproval, given: Any, error: type[PorticoError]) -> None:
    with pytest.raises(error):
        decide(asked(), command, context(**given))


@pytest.mark.parametrize("option", ["allow-session", "always"])
def test_nobody_waits_any_more_so_nothing_is_remembered(option: str) -> None:
    decision = decide(asked(), answer(option=option), context(found=None))
    assert [type(each) for each in decision.host_events] == [e.Audited]


def test_a_timeout_is_no_persons_decision() -> None:
    inside = Context(c.Caller.inside(TIMEOUT), str, shared=HOST)
    assert decide(asked(), answer(allow=False), inside).host_events == []


# -- grants ----------------------------------------------------------------------------------------------------


def shared(command: c.Command, state: HostState = HOST, caller: c.Caller = ADA) -> Outcome:
    outcome: Outcome = type(command).decide(state, command, Context(caller, str))
    return outcome


def add(**given: Any) -> AddGrant:
    return AddGrant(**{"agent": "play", "tool": "shell", "allow": True, "project": "/", **given})


def full(expires: int) -> HostState:
    grants = {str(i): Grant(str(i), "play", "*", True, expires, project="/") for i in range(limits.GRANTS)}
    return HostState(HOST.agents, grants, now=1_000)


def test_a_grant_has_an_end() -> None:
    decision = shared(add(seconds=2))
    assert decision.answer == Grant("grant-7", "play", "shell", True, 3_000, None, "/", "*", [])
    assert decision.host_events == [e.GrantAdded(grant=decision.answer, by="token:ada")]


@pytest.mark.parametrize(
    ("command", "state", "error"),
    [
        (add(project=None), HOST, BadRequest),
        (add(session="s"), HOST, BadRequest),
        (add(agent="nobody"), HOST, NotFound),
        (add(seconds=0), HOST, BadRequest),
        (add(seconds=all_limits.GRANT_SECONDS_MAX + 1), HOST, BadRequest),
        (add(), full(expires=1_001), RateLimited),
        (add(), full(expires=1_000), None),
        (RevokeGrant(grant="grant-1"), HOST, NotFound),
        (RevokeGrant(grant="1"), full(expires=1), None),
    ],
)
def test_grants(command: c.Command, state: HostState, error: type[PorticoError] | None) -> None:
    if error is None:
        assert len(shared(command, state).host_events) == 1
        return
    with pytest.raises(error):
        shared(command, state)


@given(
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 1)), st.dictionaries(st.sampled_from("ab"), st.integers(0, 1))
)
def test_settings_are_written_down_when_they_are_news(before: dict[str, int], values: dict[str, int]) -> None:
    decision = shared(ConfigureHost(values=values), HostState(settings=before))
    news = {**before, **values} != before
    assert (decision.answer, len(decision.host_events)) == (news, int(news))


@pytest.mark.parametrize("key", ["globalAutoApproveEnabled", "editAutoApprovePatterns", "permissions"])
@pytest.mark.parametrize("replace", [True, False])
def test_rules_of_approval_need_the_scope(key: str, replace: bool) -> None:
    driver = c.Caller("token-2", "bob", frozenset({"read", "drive"}))
    before = HostState(settings={} if not replace else {key: True})
    with pytest.raises(Forbidden):
        shared(ConfigureHost(values={} if replace else {key: True}, replace=replace), before, driver)


# -- what comes after a turn -----------------------------------------------------------------------------------

QUEUED = e.QueueAdded(pending="m1", kind="queue", message=Message("next"), by="ada")


@pytest.mark.parametrize(
    ("events", "given", "begins"),
    [
        ([QUEUED], {}, True),
        ([], {}, False),
        ([QUEUED, e.QueueHeld(held=True, by="host")], {}, False),
        ([QUEUED, e.SessionClosed(by="ada")], {}, False),
        ([QUEUED, e.TurnStarted(turn="t2", message=Message("x"), by="ada")], {}, False),
        ([QUEUED], {"stopping": True}, False),
    ],
    ids=["waits", "nothing waits", "held", "closed", "another turn runs", "the host stops"],
)
def test_the_queue_goes_on_only_where_nothing_speaks_against_it(
    events: list[e.Event], given: dict[str, Any], begins: bool
) -> None:
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        *events,
    )
    outcome = start_next(state, context(**given))
    assert [type(event) for event in outcome.events[:1]] == ([e.TurnStarted] if begins else [])


@pytest.mark.parametrize(("meta", "resumes"), [({}, True), ({COMMAND_LINE: "make"}, False)], ids=["message", "command"])
def test_what_ran_a_command_is_not_resumed(meta: dict[str, Any], resumes: bool) -> None:
    """Nobody knows how far it came: it would run a second time."""
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.TurnStarted(turn="t1", message=Message("go", meta=meta), by="ada"),
        e.TurnEnded(turn="t1", outcome="interrupted"),
    )
    if resumes:
        assert decide(state, c.ResumeTurn(session="s"), context()).events == [e.TurnResumed(turn="t1", by=ADA.by)]
    else:
        with pytest.raises(Conflict, match="run it again"):
            decide(state, c.ResumeTurn(session="s"), context())


SMUGGLED = {COMMAND_LINE: "make"}


@pytest.mark.parametrize(
    "command",
    [
        c.SendMessage(session="s", text="go", meta=SMUGGLED),
        c.QueueMessage(session="s", message=Message("go", meta=SMUGGLED)),
        c.EditQueued(session="s", pending="m1", text="go", meta=SMUGGLED),
    ],
    ids=["send", "queue", "edit"],
)
def test_no_message_carries_a_command_line(command: c.Command) -> None:
    """It would run as a command of the person's, with the scope of a message."""
    state = apply(
        SessionState("s"), e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"), QUEUED
    )
    with pytest.raises(Forbidden, match="scope 'terminal'"):
        decide(state, command, context(found={}))


@pytest.mark.parametrize(("option", "owner"), [("always", "ada"), ("never", "ada"), ("allow-session", "")])
def test_what_counts_in_a_project_counts_for_who_owns_the_session(option: str, owner: str) -> None:
    """Without it, one person's answer would pass calls in the sessions of everybody who works in that folder."""
    decided = decide(asked(), answer(option=option), context(owner="ada"))
    [added] = [event for event in decided.host_events if isinstance(event, e.GrantAdded)]
    assert added.grant.owner == owner


BOB = c.Caller("token-2", "bob", frozenset(c.SCOPES))


@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (BOB, True),
        (c.Caller("token-3", "laptop", BOB.scopes, person="bob"), True),
        (c.Caller.inside("host"), True),
        (ADA, False),
        (c.Caller("token-1", "ada", BOB.scopes, label="bob"), False),
        (c.Caller("token-4", "bob", BOB.scopes, person="eve"), False),
    ],
    ids=[
        "by the token",
        "by the login",
        "the host",
        "another one",
        "who calls itself so",
        "another's token of that name",
    ],
)
def test_a_question_for_somebody_is_answered_by_them(caller: c.Caller, may: bool) -> None:
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.TurnStarted(turn="t1", message=Message("go"), by="ada"),
        e.QuestionAsked(turn="t1", question="s.q1", text="Release?", people=["bob"]),
    )
    given = Context(caller, str)
    if may:
        assert decide(state, c.AnswerQuestion(question="s.q1", text="yes"), given).events
    else:
        with pytest.raises(Forbidden, match="'bob'"):
            decide(state, c.AnswerQuestion(question="s.q1", text="yes"), given)


@pytest.mark.parametrize(
    ("fields", "goes_to"),
    [
        ({}, "answer"),
        ({"colour": False}, "colour"),
        ({"colour": True, "reason": False}, "colour"),
        ({"colour": True, "reason": True}, None),
        ({"colour": False, "reason": False}, None),
    ],
)
def test_a_text_answers_the_one_field_that_has_to_be_filled(fields: dict[str, bool], goes_to: str | None) -> None:
    """`yes` to a check by a person was refused: it has a field for the reason, which may stay empty."""
    listed = [{"id": name, "kind": "text", "required": required} for name, required in fields.items()]
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.TurnStarted(turn="t1", message=Message("go"), by="ada"),
        e.QuestionAsked(turn="t1", question="s.q1", text="Colour?", fields=listed),
    )
    command = c.AnswerQuestion(question="s.q1", text="red")
    if goes_to is None:
        with pytest.raises(BadRequest, match="an answer of its own"):
            decide(state, command, context())
    else:
        [answered] = decide(state, command, context()).events
        assert isinstance(answered, e.QuestionAnswered)
        assert list(answered.answers) == [goes_to]


@pytest.mark.parametrize(("withdrawn", "response"), [(True, "accept"), (True, "decline"), (False, "accept")])
def test_the_questions_of_a_turn_that_is_cancelled_are_withdrawn(withdrawn: bool, response: Any) -> None:
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.TurnStarted(turn="t1", message=Message("go"), by="ada"),
        e.QuestionAsked(turn="t1", question="s.q1", text="Colour?"),
    )
    command = c.AnswerQuestion(question="s.q1", text="red", response=response)
    if withdrawn:
        with pytest.raises(Conflict, match="withdrawn"):
            decide(state, command, context(withdrawn=True))
    else:
        assert decide(state, command, context()).events


@pytest.mark.parametrize(("scopes", "kept"), [({"drive"}, True), ({"drive", "approve"}, False)])
def test_settings_that_replace_all_others_leave_the_tight_ones_to_those_who_may_approve(
    scopes: set[str], kept: bool
) -> None:
    state = apply(
        SessionState("s"),
        e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"),
        e.SessionConfigured(values={"approvals": "deny"}, by="ada"),
    )
    caller = c.Caller("token-2", "bob", frozenset(scopes))
    command = c.ConfigureSession(session="s", values={}, replace=True)
    apply(state, *decide(state, command, Context(caller, str, found={})).events)
    assert state.config == ({"approvals": "deny"} if kept else {})


def test_sharing_is_audited_in_the_same_commit() -> None:
    state = apply(SessionState("s"), e.SessionStarted(session="s", agent="play", model="", cwd="/work", by="ada"))
    for command in (
        ShareSession(session="s", person="bob", rights=["read"]),
        UnshareSession(session="s", person="bob"),
    ):
        decided = decide(state, command, context())
        assert [event.action for event in decided.host_events if isinstance(event, e.Audited)] == ["session.shared"]
        apply(state, *decided.events)
