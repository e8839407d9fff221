"""A model that makes the same call again and again is informed, then a person is asked."""

import pytest

from portico.agents.loop.protocol import ModelAction
from portico.agents.loop.repeats import Repeats
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls, questions, texts

LIST = Step(calls=[ScriptedCall(name="listFiles", args={"glob": "*"})])


async def test_the_same_call_is_noticed_after_three_and_stopped_after_six(desk: Desk) -> None:
    """Reported: 180 identical calls went through."""
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    desk.says(*[LIST] * 20)
    turn = await desk.run("Look.")
    assert turn.outcome == "completed"
    assert len(calls(turn)) == 6
    (question,) = questions(turn)
    assert question.text == "The agent has called 'listFiles' 6 times with the same result. Continue?"
    assert "It was stopped." in texts(turn, "notice")
    informed = ["with the same arguments" in str(each.body["messages"][-1]) for each in desk.server.requests]
    assert informed == [False, False, False, True, True, True]


async def test_a_person_may_let_it_continue(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    desk.says(*[LIST] * 6, Step(say="Done."))
    turn = await desk.run("Look.", answer="continue")
    assert (len(questions(turn)), texts(turn)) == (1, "Done.")


LISTS = ModelAction("listFiles", {"glob": "*"})
OTHER = ModelAction("listFiles", {"glob": "a"})


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ([(LISTS, "a"), (LISTS, "a"), (LISTS, "a")], [1, 2, 3]),
        ([(LISTS, "a"), (OTHER, "a"), (LISTS, "a"), (OTHER, "a")], [1, 1, 2, 2]),
        ([(LISTS, "a"), (LISTS, "b"), (LISTS, "b")], [1, 1, 2]),
        ([(LISTS, "a"), None, (LISTS, "a")], [1, 1]),
    ],
    ids=["equal", "in turns with another", "another result", "after a change"],
)
def test_what_counts_as_the_same(made: list[tuple[ModelAction, str] | None], counts: list[int]) -> None:
    repeats = Repeats()
    found = []
    for each in made:
        if each is None:
            repeats.reset()
        else:
            found.append(repeats.note(*each))
    assert found == counts


async def test_the_same_command_after_an_edit_is_not_a_repetition(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n[agent]\nrequire_approval = "none"\n')
    run = ScriptedCall(name="runCommand", args={"command": "true"})
    steps = []
    for number in range(4):
        steps += [
            Step(calls=[ScriptedCall(name="createFile", args={"path": f"{number}", "content": ""})]),
            Step(calls=[run]),
        ]
    desk.says(*steps, Step(say="Done."))
    turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn), questions(turn)) == ("completed", "Done.", [])
    assert not any("with the same arguments" in str(each.body["messages"]) for each in desk.server.requests)
