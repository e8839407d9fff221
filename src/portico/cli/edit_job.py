"""The workflow of a job that is run again: its file as it is now, or as the user edits it."""

import sys

import click

from portico.cli.output import plain, terminal
from portico.client import Client
from portico.features.jobs.commands import RetryPlanned


async def planned_retry(client: Client, job: str, step: str, edit: bool) -> RetryPlanned:
    """What the retry would run. The differences from what ran are printed."""
    plan = await client.plan_retry(job, step=step)
    if edit:
        text = click.edit(plan.text, extension=".yaml") or plan.text
        plan = await client.plan_retry(job, step=step, workflow=text)
    if plan.differences:
        print(plain(plan.differences), file=sys.stderr)
    return plan


def agreed(plan: RetryPlanned) -> bool:
    """Whether the person at the terminal starts the changed file. Without a terminal it starts."""
    return not plan.differences or not terminal() or click.confirm("Start with these changes?", default=True, err=True)
