"""What was answered since some time, newest first, and how often a rule answered in a person's place.

Read from the records of the sessions. Results are cached per session, so that a repeated query reads only new records.
"""

from collections.abc import Iterable

from msgspec import Struct, field, structs

from portico import limits
from portico.features.board.activity import asks, wants
from portico.features.people.view import View
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.cache import Cache
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.kernel.state import Summary

_SESSIONS = 20_000
"""Cache size: sessions whose answers are cached. Others are read again."""


class PastAnswer(Struct, omit_defaults=True):
    id: str
    session: str
    title: str
    text: str
    """What it was about, as shown in the inbox."""
    time: int
    by: str
    """Who answered. `timeout`: no answer in time."""
    allowed: bool = False
    """Of a question: it was answered."""
    question: bool = False
    grant: str = ""
    """The id of the grant that remembers it, while that grant is in force."""
    covers: list[str] = []
    """What the grant covers, as in `Grant.covers`."""
    tool: str = ""
    cwd: str = ""


class PastAnswers(Struct):
    answers: list[PastAnswer]
    rules: int
    """Calls that a rule or a remembered answer decided."""


class _Read(Struct):
    seq: int = 0
    pos: int = 0
    asked: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What is open: its text and its tool."""
    answers: list[PastAnswer] = field(default_factory=list)
    ruled: list[int] = field(default_factory=list)


class Answers:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._known = Cache[str, _Read](_SESSIONS)

    async def since(self, time: int, view: View) -> PastAnswers:
        found: list[PastAnswer] = []
        rules = 0
        for summary in self._host.summaries():
            if summary.modified >= time and summary.turns and view.sees(f"session/{summary.id}"):
                known = await self._read(summary)
                found += [each for each in known.answers if each.time >= time]
                rules += sum(each >= time for each in known.ruled)
        found.sort(key=lambda each: each.time, reverse=True)
        return PastAnswers([self._current(each) for each in found[: limits.ANSWERS]], rules)

    def _current(self, answer: PastAnswer) -> PastAnswer:
        """Without a grant that was revoked or has expired."""
        if not answer.grant or answer.grant in self._host.grants.live():
            return answer
        return structs.replace(answer, grant="")

    async def _read(self, session: Summary) -> _Read:
        known = self._known.setdefault(session.id, _Read())
        while known.pos < session.pos:
            page = await self._host.log.read_all(
                f"session/{session.id}", after=known.seq, limit=kernel_limits.READ_EVENTS, whole=True
            )
            _fold(known, session, page)
            if len(page) < kernel_limits.READ_EVENTS:
                known.pos = session.pos
        return known


def _fold(known: _Read, session: Summary, page: Iterable[Record]) -> None:
    for record in page:
        if record.seq <= known.seq:  # a concurrent query has read the same page
            continue
        known.seq = record.seq
        match record.event:
            case e.ApprovalAsked() as asked:
                known.asked[asked.approval] = (wants(asked, asked.tool), asked.tool)
            case e.QuestionAsked() as asked:
                known.asked[asked.question] = (asks(asked.text), "")
            case e.ApprovalAnswered(approval=ident, by=by, allowed=allowed, option=str()) as given:
                # Without an option the end of the turn closed it.
                answer = _answer(known, session, record, ident, by, allowed)
                answer.grant, answer.covers = given.grant, given.covers
                known.answers.append(answer)
            case e.QuestionAnswered(question=ident, by=by, response=response) if response != "cancel":
                known.answers.append(_answer(known, session, record, ident, by, response == "accept", question=True))
            case e.ToolDecided():
                known.ruled.append(record.time)
            case _:
                pass


def _answer(
    known: _Read, session: Summary, record: Record, ident: str, by: str, allowed: bool, *, question: bool = False
) -> PastAnswer:
    text, tool = known.asked.pop(ident, ("", ""))
    title, cwd = session.title, session.cwd
    return PastAnswer(
        ident, session.id, title, text, record.time, by, allowed, question, tool=tool, cwd=cwd if tool else ""
    )
