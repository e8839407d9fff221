"""The features of Portico that declare their own commands; importing this module registers them.

The table of commands (`portico.kernel.commands.COMMANDS`) is complete after that: doors, the client and the command
line build their routes, tools and verbs from it.
"""

from portico.features.approvals import commands as approvals
from portico.features.automations import commands as automations
from portico.features.automations import events as automation_events
from portico.features.budgets import commands as budgets
from portico.features.changes import commands as changes
from portico.features.chats import commands as chats
from portico.features.client_servers import commands as client_servers
from portico.features.configuration import commands as configuration
from portico.features.drafts import commands as drafts
from portico.features.files import commands as files
from portico.features.folders import commands as folders
from portico.features.hosts import commands as hosts
from portico.features.jobs import commands as jobs
from portico.features.jobs import events as job_events
from portico.features.native import commands as native
from portico.features.notices import commands as notices
from portico.features.pairing import commands as pairing
from portico.features.people import commands as people
from portico.features.projects import commands as projects
from portico.features.readiness import commands as readiness
from portico.features.sandboxes import commands as sandboxes
from portico.features.secrets import commands as secrets
from portico.features.terminals import commands as terminals
from portico.features.terminals import events as terminal_events
from portico.features.transcripts import commands as transcripts

__all__ = [
    "approvals",
    "automation_events",
    "automations",
    "budgets",
    "changes",
    "chats",
    "client_servers",
    "configuration",
    "drafts",
    "files",
    "folders",
    "hosts",
    "job_events",
    "jobs",
    "native",
    "notices",
    "pairing",
    "people",
    "projects",
    "readiness",
    "sandboxes",
    "secrets",
    "terminal_events",
    "terminals",
    "transcripts",
]
