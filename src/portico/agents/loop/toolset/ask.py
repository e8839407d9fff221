"""`askUser`: a question to the person, with choices where there are some."""

from msgspec import Struct

from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json

CHOICES_MAX = 10


class AskArguments(Struct, forbid_unknown_fields=True):
    question: str
    choices: list[str] = []


async def _plan(wanted: AskArguments, context: ToolContext) -> PlannedCall:
    if not wanted.question.strip() or len(wanted.choices) > CHOICES_MAX:
        raise BadRequest(f"'question' is a text, and there are at most {CHOICES_MAX} choices.", field="question")

    async def act(call: Call) -> str:
        answer = await call.turn.ask(wanted.question, _fields(wanted))
        if answer.response != "accept":
            return "The person did not answer. Continue with a sensible assumption and say which, or finish."
        return f"The person answered: {answer.text}"

    return PlannedCall(Action("read"), f"Ask: {wanted.question}"[:200], act, free=True)


def _fields(wanted: AskArguments) -> list[Json]:
    if not wanted.choices:
        return []
    options = [{"id": each, "label": each} for each in dict.fromkeys(wanted.choices)]
    return [
        {
            "id": "answer",
            "title": "Answer",
            "message": wanted.question,
            "kind": "single-select",
            "required": True,
            "allowFreeformInput": True,
            "options": options,
        }
    ]


ASK = ExtraTool(
    declare(
        "askUser",
        "Asks the person and waits for the answer. Only for decisions that the task and the files leave open.",
        ["question"],
        question=TEXT,
        choices={"type": "array", "items": TEXT},
    ),
    AskArguments,
    _plan,
    kind="think",
)
