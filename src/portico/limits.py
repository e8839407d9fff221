"""What clients, features and doors may cost the process, each with the reason for its figure. The limits that the
kernel reads are in `portico.kernel.limits`. A test exceeds each one by one. Figures of a single protocol or tool are
next to their code (docs/decisions/0010)."""

from typing import TYPE_CHECKING, Any

from portico.kernel import limits as kernel_limits
from portico.kernel.limits import KIB, MIB

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        """Plugins that were written for 0.2 read all limits here."""
        return getattr(kernel_limits, name)


# -- the host --------------------------------------------------------------------------------------------------
ENTERED_FOLDERS = 10_000
"""Folders that sandboxes could write to and that still exist: 1 MB that each new one is written with. Jobs make one for
each work tree, and remove it."""
GIT_TMP_BYTES = 64 * MIB
"""`/tmp` of a confined git command of the host: git itself uses none, and a filter little. It is in memory."""
AGENT_PROCESSES = 20
"""Agent processes at once: with the 200 MB that most of them take, 4 GB."""
LOGINS = 50
"""Logins of one person at once: all their browsers; the oldest goes first."""
GRANT_SECONDS_MAX = 365 * 86_400.0
"""A year: what was allowed before that is forgotten by everybody."""
SHARES = 100
"""People that one session is shared with by name: more is everybody."""
TOKENS = 50
"""Valid tokens of one person: each is compared with every request; a script that makes more has a mistake."""
TERMINAL_BYTES = 8 * MIB
"""Output of a terminal on the disk before what it shows is written down whole and the pieces go: eight times what it
shows."""
CLOSED_TERMINALS = 100
"""Closed terminals without a session whose last screen is kept: each has a megabyte at most, and nobody looks further
back. Those of a session go with it."""
ACTIVITY_CHARS = 160
"""What a session does now, in one line: no list has room for more."""
USAGE_DAYS = 400
"""How far back usage is counted: a year and a month to compare with."""
BOARD_ROWS = 500
"""Sessions that the live list begins with: more than anybody scrolls through, and 300 KB at most."""
BOARD_DAYS = 31
"""Times between which a list counts what it has not loaded: a month by days."""
ANSWERS = 200
"""Answers that the inbox looks back on: a day of somebody who answers all day."""
INTERRUPTED_DAYS = 7
"""An interrupted turn is in the inbox for so long: what no one resumed in a week is not needed any more."""
BOARD_SECONDS = 0.1
"""Changes of the live list are collected this long: quick to the eye, and ten frames a second at most."""
JOB_SUMMARIES = 10_000
"""Jobs in lists and in memory, some 2 KB each: a year with one every hour. Those before them stay in the log."""
INPUT_SECRETS = 200
"""Secret inputs of jobs that a host stores. Every output of a step is searched for all of them."""
INPUT_SECRET_DAYS = 30
"""So long a secret input is stored after the last job was started with it, so that the job can be retried: a failure is
looked at within days."""
JOB_DESCRIBE_SECONDS = 60.0
"""So long the step of a job waits for agents that are late: nobody looks on, and a machine that has just started, with
everything else that starts, is slow. A job that is taken up after a crash must not fail of that."""
CAPTURES = 2
"""Folders captured concurrently: each starts up to three short git processes, and tools wait for theirs."""
WATCHED_FOLDERS = 32
"""Folders of git that are watched for editors; each has a thread. Further ones are refreshed after turns only."""
FOLDER_REFRESH_SECONDS = 1.0
"""Between two refreshes of a folder that keeps changing: editors are current within two seconds, and a refresh starts
up to five git processes."""
CHANGESETS = 4
"""Changesets that are computed concurrently for editors: more would occupy the pool of threads that reads files."""
KNOWN_REPOSITORIES = 256
"""Folders whose repository is cached: a few KB each, and more than a host works in at a time."""
KEPT_INDEXES = 32
"""Folders whose last captured index is kept in memory, so that the next capture starts from it."""
KEPT_INDEX_BYTES = 1024 * 1024
"""A larger index (about 10,000 files) is not kept: it is copied from the disk each time."""
CAPTURE_SECONDS = 10.0
"""A tool waits this long for the capture of its turn's beginning, and a stop for that of the last end: seconds are a
huge repository on a cold disk."""
CAPTURE_END_SECONDS = 0.5
"""A turn that used tools waits this long for the capture of its end: usually it is 50 ms, and cancels are quick."""
DIFF_BYTES = MIB
"""One diff in one answer: more than anybody reads; the files tell the rest."""
LOGIN_TOKEN_CHARS = 20_000
"""The longest tokens that vendors give out are a few thousand characters."""
DESCRIBE_SECONDS = 5.0
"""An agent that has not described itself by then is listed as one that does not answer: lists of agents are waited for
by people, and finding a local model server takes a second."""
SERVER_SECONDS = 120.0
"""For an MCP server that is asked outside of a turn: a page of an editor waits for it, and has nobody to show progress
to."""
AGENT_CHECK_SECONDS = 75.0
"""A check of an agent ends by then: some programs unpack themselves at their first start, for which they have 60 s."""
AGENT_RECHECK_SECONDS = 60.0
"""An agent that was not ready is asked again after this, when a default is wanted: somebody may have signed in."""
AGENT_FACT_SECONDS = 300.0
"""A remembered problem (signed out, key rejected) counts this long: nothing reports that a person has signed in."""

# -- the jobs --------------------------------------------------------------------------------------------------
RETRY_AFTER_SECONDS = 3600.0
"""A vendor that asks a job to wait longer is tried again after this: quotas by the hour are the longest usual ones."""
INTERRUPTIONS = 20
"""A task in whose middle the host ended so often waits for a person: perhaps it is what ends the host."""

# -- the doors -------------------------------------------------------------------------------------------------
DOOR_SECONDS = 60.0
"""A door has this long to open, and to close: a long queue on a slow disk. One that hangs is left out."""
BODY_BYTES = 8 * MIB
"""One HTTP body: MESSAGE_BYTES with room for JSON escapes."""
ARCHIVE_BYTES = 64 * MIB
"""A session that comes from another host, with its blobs: some of them, in base64; all of it stands in memory once."""
FRAME_BYTES = 8 * MIB
"""One WebSocket frame, the same."""
JSON_DEPTH = 64
"""Nesting of any JSON we take: real documents stay under 20."""
CONNECTIONS = 10_000
"""Open connections: 5,000 idle editors with as many pollers."""
OTHER_FILES = 2_000
"""Open files besides: databases, terminals, pipes of agents, watched folders."""
HEADER_BYTES = 32 * KIB
"""Request line and headers together: a long URL and a cookie jar."""
REQUEST_HEAD_SECONDS = 15.0
"""From the connection, or the first byte of a further request, to the end of the head: a phone on a bad line."""
REQUEST_BODY_SECONDS = 120.0
"""From there to the end of the body: BODY_BYTES at half a megabit a second."""
PIECE_BYTES = 8 * KIB
"""One send of a stream, and what may wait in a connection beside the system's own buffers."""
KEEP_ALIVE_SECONDS = 15
"""A connection without a request: pages ask again sooner, and each costs a file descriptor."""
HEARTBEAT_SECONDS = 15.0
"""Of silence in a stream: proxies and phones drop connections after some 30 to 60."""
SEND_SECONDS = 30.0
"""One send that makes no progress for this long means a dead client."""
PAIRINGS = 20
"""Open codes that each log in one device: one person pairs a few at a time."""
WRONG_TOKENS = 10
"""Wrong tokens per address and minute that are answered at once; after that each waits."""
TERMINALS = 100
"""Open terminals: each is a process with a screen of scrollback."""
SUBSCRIPTIONS = 1_000
"""Channels one connection may follow."""
REPLAY_BUFFER_BYTES = 512 * KIB
"""Actions of one channel kept ready for clients that come back: some thousand, minutes of a lively session."""
REPLAY_BUFFERS_BYTES = 16 * MIB
"""The same for all channels; it is a cache, and the log has everything."""

EACH_ITEMS = 1_000
"""Of one Each in a job: each is at least one session; more is a mistake in a glob."""

# -- automations -----------------------------------------------------------------------------------------------
AUTOMATIONS = 20_000
"""Automations: each takes about 2 KB of memory and 0.2 ms at a start."""
CRON_CHARS = 200
"""Of a cron expression: any real one fits three times; reading 100 KB of it takes 0.7 seconds."""
EVERY_SECONDS = 10.0
"""The shortest interval: agents take longer, and each run stays in the history."""
MISSED_RUNS = 100
"""Missed times that are counted or made up for: more is a pile of work that nobody waits for any more."""
LATE_SECONDS = 60.0
"""A time that is so long ago was missed; a restart takes less."""
QUEUED_RUNS = 1_000
"""Runs of one automation that wait for the one before: a busy day of a hook."""
TRIGGERS = 20
"""Of one automation: more is several automations."""
AUTOMATION_DEPTH = 8
"""Automations that start one another: deeper is a loop."""
AUTOMATION_STARTS = 30
"""Runs of one automation in a minute, hooks apart: above any use, and a loop costs little."""
HOOK_BYTES = 1024 * KIB
"""The body of one delivery: GitHub's largest are 25 MB, and what a prompt can use is far less."""
HOOKS_PER_MINUTE = 120_000
"""The most that one hook may be allowed: twice what the host was measured to accept."""
HOOK_SECONDS = 300.0
"""How old a signed delivery may be, or how far ahead its clock: as Standard Webhooks has it."""
TIMER_SECONDS = 10.0
"""The longest sleep of the scheduler: a clock that was set, or a machine that slept, is noticed by then."""
