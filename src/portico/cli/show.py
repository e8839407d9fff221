"""Events as a person reads them in a terminal: streamed text, one line per tool call, one per end."""

import sys

import msgspec

from portico.cli.output import plain, terminal
from portico.client import RemoteRecord
from portico.features.transcripts.history_events import retold
from portico.kernel import events as e
from portico.workspace.escapes import visible_json

_DIM, _BOLD, _RED, _OFF = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[0m"


class Printer:
    def __init__(self, as_json: bool = False, prompts: bool = True) -> None:
        self._json = as_json
        self._prompts = prompts
        self._colour = terminal()
        self._kinds: dict[str, str] = {}
        """The kind of each part, and the name of each call."""
        self._written: dict[str, int] = {}
        self._column = 0

    def show(self, record: RemoteRecord) -> None:
        if self._json:
            print(visible_json(msgspec.json.encode(record).decode()), flush=True)
            return
        self._show(record.event)

    def _show(self, told: e.Event) -> None:
        match told:
            case e.TurnStarted() as event if self._prompts:
                self._line(f"> {event.message.text}", _BOLD)
            case e.PartStarted() as event:
                self._kinds[event.part] = event.kind
                self._newline()
            case e.PartDelta() as event:
                self._grow(event.part, event.text)
            case e.PartEnded() as event if event.replaces:
                self._line("[taken back]" if not event.text else "[corrected]", _DIM)
                self._grow(event.part, event.text)
                self._newline()
            case e.PartEnded() as event:
                self._grow(event.part, event.text[self._written.get(event.part, 0) :])
                self._newline()
            case e.ToolStarted() as event:
                self._kinds[event.call] = event.title or event.tool
            case e.ToolReady() as event:
                name = event.title or self._kinds.get(event.call, event.call)
                self._line(f"[{name}] {event.input[:200]}".rstrip(), _DIM)
            case e.ToolEnded() as event:
                ending = "ok" if event.ok else event.error.message if event.error else event.outcome
                self._line(f"[{self._kinds.get(event.call, event.call)}] {ending}", _DIM if event.ok else _RED)
            case e.TurnEnded() as event if event.outcome != "completed":
                words = f"{event.outcome}: {event.error.message}" if event.error else event.outcome
                self._line(f"-- {words}", _RED)
            case e.HistoryCopied() as event:
                for each in retold(event):
                    self._show(each)
            case _:
                pass

    def done(self) -> None:
        self._newline()

    def _grow(self, part: str, text: str) -> None:
        self._written[part] = self._written.get(part, 0) + len(text)
        if self._kinds.get(part, "text") == "reasoning":
            self._write(text, _DIM)
        else:
            self._write(text, "")

    def _line(self, text: str, style: str) -> None:
        self._newline()
        self._write(text + "\n", style)

    def _newline(self) -> None:
        if self._column:
            self._write("\n", "")

    def _write(self, text: str, style: str) -> None:
        text = plain(text)
        if not text:
            return
        sys.stdout.write(f"{style}{text}{_OFF}" if style and self._colour else text)
        sys.stdout.flush()
        self._column = len(text) - text.rfind("\n") - 1 if "\n" in text else self._column + len(text)
