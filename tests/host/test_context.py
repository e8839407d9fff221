"""What an agent is told beside a message, what plugins add, and the small rules that decide how much and how often."""

from typing import Any

import pytest

from portico.features.chats.draft import OFFERED, TYPED, offer, offered_text, typed_text
from portico.kernel import fallback, limits
from portico.kernel.command_turn import COMMAND_LINE, command_line
from portico.kernel.config import check as check_config
from portico.kernel.context import ABOUT, ATTACHED, LATER, MESSAGE, RULES, RULES_SENT, history, news, told, transcript
from portico.kernel.customization import expanded, instructions, prompts, server_at, server_channel, switched_off
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json, Message
from portico.kernel.question import Answer
from portico.kernel.rate import Bucket
from portico.kernel.state import SessionState, TextPart, TurnState
from portico.kernel.tool_output import cut, grow, missing, pieces


def session(kept: dict[str, Json] | None = None, **more: Any) -> SessionState:
    return SessionState(id="s", agent="a", client_data=kept or {}, **more)


def plugin(*children: Json, ident: str = "p", **more: Any) -> dict[str, Json]:
    texts = {child["id"]: child.pop("text", "") for child in children}
    return {f"plugin/{ident}": {"id": ident, "children": list(children), "texts": texts, **more}}


def rule(text: str, ident: str = "r", **more: Any) -> Json:
    return {"type": "rule", "id": ident, "name": ident, "text": text, **more}


def skill(text: str, name: str = "sew", **more: Any) -> Json:
    return {"type": "skill", "id": name, "name": name, "text": text, **more}


def prompt(text: str, name: str = "fix", **more: Any) -> Json:
    return {"type": "prompt", "id": name, "name": name, "text": text, **more}


# -- beside the message ----------------------------------------------------------------------------------------

SAID = Message("hello")
CHAT = {"type": "chat", "label": "Other", "modelRepresentation": "They said so."}


@pytest.mark.parametrize(
    ("state", "first", "later", "text"),
    [
        (session(), True, False, "hello"),
        (session(config={"context": "a bug"}), True, False, f"{ABOUT}a bug{MESSAGE}hello"),
        (session(config={"context": "a bug"}), False, False, "hello"),
        (session(config={"context": ""}), True, False, "hello"),
        (session(config={"context": 7}), True, False, "hello"),
        (session(plugin(rule("Be kind."))), True, False, f"{RULES}Be kind.{MESSAGE}hello"),
        (session(plugin(rule("Be kind."))), False, False, "hello"),
        (session(plugin(rule("Be kind."))), False, True, f"{LATER}Be kind.{MESSAGE}hello"),
        (
            session(plugin(rule("Be kind.")), config={"context": "a bug"}),
            True,
            False,
            f"{RULES}Be kind.\n\n{ABOUT}a bug{MESSAGE}hello",
        ),
    ],
)
def test_what_stands_before_a_message(state: SessionState, first: bool, later: bool, text: str) -> None:
    assert told(SAID, state, first=first, later=later).text == text


def test_attachments_that_stand_for_words_are_told_and_others_stay() -> None:
    picture = {"type": "image", "data": "x"}
    message = told(Message("see", attachments=[CHAT, picture, {"type": "chat"}]), session(), first=False)
    assert message.text == f"see{ATTACHED}Other:\nThey said so."
    assert message.attachments == [picture, {"type": "chat"}]


def test_a_message_without_any_of_it_is_the_same_message() -> None:
    assert told(SAID, session(), first=True) is SAID


def test_the_agent_is_told_the_rules_once() -> None:
    kept = plugin(rule("Be kind."))
    first = news(session(kept))
    assert first is not None
    assert news(session({**kept, RULES_SENT: first})) is None
    assert news(session({**plugin(rule("Be quick.")), RULES_SENT: first})) not in (None, first)
    assert news(session()) is None


def turn(text: str, answer: str = "", **meta: Any) -> TurnState:
    parts: list[Any] = [TextPart("1", "reasoning", "hm"), TextPart("2", "text", answer)] if answer else []
    return TurnState("t", Message(text, meta=meta), "me", 0, 0, parts)


def test_a_conversation_in_words_is_without_what_people_ran_themselves() -> None:
    turns = [turn("one", "two"), turn("ls", **{COMMAND_LINE: "ls"}), turn("three")]
    assert transcript(turns) == "User: one\nYou: two\n\nUser: three\nYou: (no answer)"
    assert transcript([turn("x" * 70_000)]).startswith("(the beginning is left out)\n")
    assert [each.message.text for each in history(turns, session(config={"context": "a bug"}))] == [
        f"{ABOUT}a bug{MESSAGE}one",
        "three",
    ]


@pytest.mark.parametrize(("meta", "line"), [({COMMAND_LINE: "ls"}, "ls"), ({COMMAND_LINE: 7}, None), ({}, None)])
def test_a_message_that_runs_a_command(meta: Json, line: str | None) -> None:
    assert command_line(Message("x", meta=meta)) == line


# -- plugins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        ({}, ""),
        (plugin(rule("One."), rule("Two.", "r2")), "One.\n\nTwo."),
        (plugin(rule("One.", alwaysApply=False)), ""),
        (plugin(skill("How to.")), "Skill 'sew'\nHow to."),
        (plugin(skill("How to.", description="with thread")), "Skill 'sew': with thread\nHow to."),
        (plugin(skill("How to."), rule("One.")), "One.\n\nSkill 'sew'\nHow to."),
        (plugin(rule("One."), enabled=False), ""),
        ({**plugin(rule("One.")), "customization/p": {"enabled": False}}, ""),
        ({**plugin(rule("One.")), "customization/p": {"running": False}}, ""),
        ({**plugin(rule("One."), rule("Two.", "r2")), "customization/r": {"enabled": False}}, "Two."),
        (plugin(rule("One.", enabled=False)), ""),
        ({**plugin(rule("One.", enabled=False)), "customization/r": {"enabled": True}}, "One."),
        ({**plugin(rule("One.")), **plugin(rule("Two."), ident="q")}, "One.\n\nTwo."),
    ],
)
def test_what_plugins_have_to_say(kept: dict[str, Json], text: str) -> None:
    assert instructions(kept) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/fix", "Mend it."),
        ("/fix the door", "Mend it.\n\nthe door"),
        ("/fix  ", "Mend it."),
        ("/other", "/other"),
        ("fix", "fix"),
        (" /fix", " /fix"),
        ("/", "/"),
    ],
)
def test_a_prompt_is_what_its_name_stands_for(text: str, expected: str) -> None:
    kept = plugin(prompt("Mend it.", description="mends"))
    assert expanded(text, kept) == expected
    assert prompts(kept) == {"fix": ("mends", "Mend it.")}


def test_switches_that_are_off() -> None:
    kept = {
        "customization/a": {"enabled": False},
        "customization/b": {},
        "customization/c": {"running": False},
        "x": {},
    }
    assert switched_off(kept) == {"a", "c"}


@pytest.mark.parametrize(
    ("channel", "found"),
    [
        ("mcp://s-1/tickets", ("s-1", "tickets")),
        ("mcp://s-1/a/b", ("s-1", "a/b")),
        ("mcp://s-1/", None),
        ("mcp:///tickets", None),
        ("http://s-1/tickets", None),
        ("", None),
    ],
)
def test_the_way_to_a_server_of_a_session(channel: str, found: tuple[str, str] | None) -> None:
    assert server_at(channel) == found
    assert server_at(server_channel("s-1", "mcp:tickets")) == ("s-1", "tickets")


# -- settings of a session -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["ask", "allow", "deny"])
def test_the_words_of_approvals(value: str) -> None:
    check_config({"approvals": value, "whatever": 7})


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"approvals": "yes"}, "config.approvals"),
        ({"approvals": None}, "config.approvals"),
        ({"fallback": "loop"}, "config.fallback"),
        ({"fallback": [7]}, "config.fallback"),
        ({"fallback": [""]}, "config.fallback"),
        ({"fallback": ["/model"]}, "config.fallback"),
    ],
)
def test_a_setting_that_the_host_understands_is_checked(config: Json, field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_config(config)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("agent", "model", "choices", "following"),
    [
        ("a", "", None, None),
        ("a", "", [], None),
        ("a", "", ["b"], "b"),
        ("b", "", ["b", "c"], "c"),
        ("b", "m", ["b/m", "c"], "c"),
        ("b", "m", ["b/n", "c"], "b/n"),
        ("c", "", ["b", "c"], None),
    ],
)
def test_who_answers_next(agent: str, model: str, choices: list[str] | None, following: str | None) -> None:
    state = SessionState(id="s", agent=agent, model=model, config={"fallback": choices} if choices is not None else {})
    assert fallback.following(state) == following


@pytest.mark.parametrize(
    ("choice", "parts"), [("a", ("a", "")), ("a/m", ("a", "m")), ("acp:x/org/m", ("acp:x", "org/m"))]
)
def test_an_agent_and_its_model(choice: str, parts: tuple[str, str]) -> None:
    assert fallback.split(choice) == parts


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], True),
        ([TextPart("1", "notice", "wait")], True),
        ([TextPart("1", "text", "", done=True)], True),
        ([TextPart("1", "text", "", done=False)], False),
        ([TextPart("1", "text", "hi", done=True)], False),
        ([TextPart("1", "reasoning", "hm", done=True)], False),
    ],
)
def test_nothing_that_was_begun_is_done_again(parts: list[Any], expected: bool) -> None:
    assert fallback.untouched(TurnState("t", SAID, "me", 0, 0, parts)) is expected


# -- drafts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "text", "typed"),
    [
        (None, "offer", ""),
        ({"text": ""}, "offer", ""),
        ({"text": "mine"}, "mine\noffer", "mine"),
        ({"text": "see the offer"}, "see the offer", "see the offer"),
        ({"text": "old", "_meta": {OFFERED: True}}, "offer", ""),
        ({"text": "mine\nold", "_meta": {OFFERED: True, TYPED: "mine"}}, "mine\noffer", "mine"),
        ({"text": "mine", "_meta": "odd"}, "mine\noffer", "mine"),
    ],
)
def test_an_offer_follows_what_somebody_has_typed(before: Json | None, text: str, typed: str) -> None:
    made = offer("offer", before)
    assert (made["text"], typed_text(made), offered_text(made)) == (text, typed, text)


@pytest.mark.parametrize("value", [None, {}, {"text": "mine"}, {"text": "x", "_meta": {}}, {"_meta": {OFFERED: False}}])
def test_a_draft_that_nobody_offers(value: Json | None) -> None:
    assert offered_text(value) == ""


# -- how often, how much ---------------------------------------------------------------------------------------


def test_a_bucket_gives_a_burst_and_then_the_rate() -> None:
    bucket = Bucket(rate=2, burst=3)
    assert [bucket.take(10.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(10.25) == 0.25
    assert bucket.take(10.5) == 0.0
    assert bucket.take(10.5) == 0.5
    assert [bucket.take(99.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


KEEP = limits.TOOL_OUTPUT_CHARS


@pytest.mark.parametrize("size", [0, 1, KEEP, 4 * KEEP])
def test_output_is_whole_while_it_is_short(size: int) -> None:
    assert grow("x" * size, 0, "") == ("x" * size, 0)


def test_long_output_is_its_beginning_and_its_end_however_it_came() -> None:
    output, left = "", 0
    for number in range(20):
        output, left = grow(output, left, f"{number:06d}" * (KEEP // 12))
    assert output.startswith("000000")
    assert output.endswith("000019")
    assert missing(left) in output
    whole = sum(len(f"{number:06d}" * (KEEP // 12)) for number in range(20))
    assert len(output) - len(missing(left)) + left == whole
    short = cut(output, left)
    assert len(short) <= KEEP + 60
    assert missing(whole - 2 * (KEEP // 2)) in short


def test_an_output_that_fits_is_not_cut() -> None:
    assert cut("x" * KEEP) == "x" * KEEP
    assert cut("x" * (KEEP + 1)).count("characters left out") == 1
    assert (missing(0), missing(-3)) == ("", "")


@pytest.mark.parametrize(
    ("size", "count"),
    [(0, 0), (1, 1), (limits.DELTA_BYTES, 1), (limits.DELTA_BYTES + 1, 2), (limits.DELTA_BYTES * 3, 3)],
)
def test_a_long_text_in_deltas_that_fit(size: int, count: int) -> None:
    found = list(pieces("x" * size))
    assert len(found) == count
    assert sum(map(len, found)) == size


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({}, ""),
        ({"answer": "yes"}, "yes"),
        ({"answer": {"value": "yes"}}, "yes"),
        ({"answer": {"state": "x", "value": {"value": "yes"}}}, "yes"),
        ({"answer": {}}, ""),
        ({"answer": 7}, "7"),
    ],
)
def test_the_text_of_an_answer(answers: Json, text: str) -> None:
    assert Answer("accept", answers, "me").text == text
