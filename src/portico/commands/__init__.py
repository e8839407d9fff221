"""What is asked of the host, as data: one struct for each command, beside the events, which record what happened.

A door turns its wire into a command and calls `host.do(command, caller)`; it decides nothing. `COMMANDS` is the table
from which routes, tools and documents are made; docs/reference/commands.md describes each one, and a test checks it.
Features declare their own commands and register them (`portico.features`). Imports events, errors and limits only.
"""

from portico.commands.admin import *
from portico.commands.answers import *
from portico.commands.caller import *
from portico.commands.client import *
from portico.commands.command import *
from portico.commands.message import *
from portico.commands.person import *
from portico.commands.reads import *
from portico.commands.session import *
from portico.commands.table import *
