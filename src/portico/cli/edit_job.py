"""The workflow of a job that is run again: its file as it is now, or as the user edits it."""

import difflib
import sys
from pathlib import Path

import click

from portico.cli.follow_job import JobView
from portico.cli.output import plain
from portico.kernel.errors import BadRequest


def changed_text(view: JobView, edit: bool) -> str:
    """The text of the workflow if it differs from the stored one; the differences are printed. Empty: no change."""
    flow = view.entry.jobs[view.summary.name].flow
    if flow is None:
        raise BadRequest("Only a workflow can be retried from a step. Use: portico jobs resume", field="from")
    text = _current(flow.file, flow.source)
    if edit:
        text = click.edit(text, extension=Path(flow.file).suffix or ".yaml") or text
    lines = difflib.unified_diff(flow.source.splitlines(), text.splitlines(), "as it ran", "now", lineterm="")
    print(plain("\n".join(lines)), file=sys.stderr, end="" if text == flow.source else "\n")
    return "" if text == flow.source else text


def _current(file: str, stored: str) -> str:
    try:
        return Path(file).read_text() if Path(file).is_absolute() else stored
    except OSError:
        return stored
