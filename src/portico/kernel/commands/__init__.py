"""What is asked of the host, as data: one struct for each command, beside the events, which record what happened.

A door turns its wire into a command and calls `host.do(command, caller)`; it decides nothing. `COMMANDS` is the table
from which routes, tools and documents are made; docs/reference/commands.md describes each one, and a test checks it.
Features declare their own commands and register them (`portico.features`). Imports events, errors and limits only.
"""

from portico.kernel.commands.answers import *
from portico.kernel.commands.caller import *
from portico.kernel.commands.client import *
from portico.kernel.commands.command import *
from portico.kernel.commands.message import *
from portico.kernel.commands.person import *
from portico.kernel.commands.reads import *
from portico.kernel.commands.session import *
from portico.kernel.commands.table import *
