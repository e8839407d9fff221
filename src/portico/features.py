"""The features of Portico that declare their own commands; importing this module registers them.

The table of commands (`portico.commands.COMMANDS`) is complete after that: doors, the client and the command line build
their routes, tools and verbs from it.
"""

from portico.automation import commands as automations
from portico.automation import events as automation_events
from portico.budgets import commands as budgets
from portico.changes import commands as changes
from portico.chats import commands as chats
from portico.client_servers import commands as client_servers
from portico.configuration import commands as configuration
from portico.drafts import commands as drafts
from portico.files import commands as files
from portico.jobs import commands as jobs
from portico.jobs import events as job_events
from portico.native import commands as native
from portico.notices import commands as notices
from portico.pairing import commands as pairing
from portico.projects import commands as projects
from portico.sandboxes import commands as sandboxes
from portico.secrets import commands as secrets
from portico.terminals import commands as terminals
from portico.terminals import events as terminal_events

__all__ = [
    "automation_events",
    "automations",
    "budgets",
    "changes",
    "chats",
    "client_servers",
    "configuration",
    "drafts",
    "files",
    "job_events",
    "jobs",
    "native",
    "notices",
    "pairing",
    "projects",
    "sandboxes",
    "secrets",
    "terminal_events",
    "terminals",
]
