"""Values of secrets in what a question shows: in each of its parts."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.entry import ANSWER
from portico.features.jobs.step import AskDo, FlowStep
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps import ask
from portico.features.jobs.steps.ask import SHOWN_CHARS
from portico.features.secrets.feature import HostSecrets
from portico.features.secrets.mask import Mask
from portico.kernel import commands as c
from portico.kernel.host import Host
from portico.kernel.question import Answer, Asking
from portico.server.home import Home
from tests.jobs.test_checks import ANN, asked
from tests.jobs.workflow.playing import finish, start

VALUE = "c4nary-77e1-value"
MASKED = "[redacted: KEY]"


class Sessions:
    """Records what is asked, and answers with the first choice."""

    def __init__(self) -> None:
        self.asked: Asking | None = None

    async def ask_person(self, title: str, asking: Any, seconds: float | None = None) -> Answer:
        self.asked = await asking()
        first = self.asked.fields[0]["options"][0]["id"] if self.asked.fields else "yes"
        return Answer("accept", {ANSWER: first}, "me")


async def shown(tmp_path: Path, **more: Any) -> tuple[str, str]:
    """Everything of the question as text, and the answer."""
    context = {"steps": {"a": {"output": f"it is {VALUE}"}}, "inputs": {}, "run": {}}
    values = StepValues(context=context, public=context, cwd=str(tmp_path), mask=Mask({"KEY": [VALUE]}))
    step = FlowStep(id="q", name="q", do=AskDo(**{"question": "Well?", **more}))
    sessions = Sessions()

    async def diff() -> str:
        return f"+{VALUE}\n"

    outcome = await ask.run(step, values, sessions, "q", diff)  # type: ignore[arg-type]
    assert sessions.asked is not None
    return str(sessions.asked), outcome.answer


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "the question": ({"question": "Is {{ steps.a.output }} right?"}, f"Is it is {MASKED} right?"),
    "a choice": ({"choices": ["{{ steps.a.output }}", "No"]}, f"it is {MASKED}"),
    "a value": ({"show": ["{{ steps.a.output }}"]}, f"it is {MASKED}"),
    "the title of a value": ({"show": [f"{{{{ '{VALUE}' }}}}"]}, f"'title': \"'{MASKED}'\""),
    "the changes": ({"show": ["changes"]}, f"+{MASKED}"),
    "a file": ({"show": ["file:notes.txt"]}, f"the key {MASKED} is here"),
    "the name of a file": ({"show": ["file:{{ steps.a.output }}.txt"]}, f"'title': 'it is {MASKED}.txt'"),
    "a value that a file ends with": ({"show": ["file:cut.txt"]}, "'text': 'xxx"),
}


@pytest.mark.parametrize(("more", "expected"), PARTS.values(), ids=PARTS)
async def test_no_part_of_a_question_has_a_value(tmp_path: Path, more: dict[str, Any], expected: str) -> None:
    (tmp_path / "notes.txt").write_text(f"the key {VALUE} is here")
    (tmp_path / "cut.txt").write_text("x" * (SHOWN_CHARS - 5) + VALUE)
    text, answer = await shown(tmp_path, **more)
    assert expected in text
    assert VALUE not in text + answer
    assert VALUE[:5] not in text


async def test_a_file_without_a_value_is_shown_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "whole.txt").write_text("ends with c4")
    assert "ends with c4" in (await shown(tmp_path, show=["file:whole.txt"]))[0]


async def test_a_person_check_and_its_evidence_have_no_value(host: Host, tmp_path: Path) -> None:
    """The output of a command that checks was stored as it was printed."""
    await host.add(HostSecrets(host, Home(tmp_path / "home")))
    text = """
        inputs: {token: {type: secret}}
        steps:
          - {id: note, run: "echo {{ inputs.token }} > note.txt"}
          - prompt: "[[say:ok]]"
            check: [{run: cat note.txt}, {person: Is it good?}]
    """
    jobs = await Jobs.open(host)
    job = await start(jobs, text, tmp_path, token=VALUE)
    question = await asked(host)
    assert question.evidence[0]["text"] == "[redacted: token]"
    await host.do(c.AnswerQuestion(question=question.question, answers={"answer": "yes"}), ANN)
    assert (await finish(jobs, job)).status == "succeeded"
    stored = [r.data for each in host.log.channels("") for r in await host.log.read(each, 0, 1_000)]
    assert [data for data in stored if VALUE.encode() in data] == []
    await jobs.close()
