"""What clients, sessions and the disk may cost the process, each with the reason for its figure. A test exceeds each by
one. The limits of features and doors are in `portico.limits` (docs/decisions/0010)."""

KIB = 1024
MIB = 1024 * KIB

# -- the log ---------------------------------------------------------------------------------------------------
COMMIT_CADENCE = 0.003
"""Seconds between two commits with deltas alone: far below what an eye sees, and a fast stream merges."""
BATCH_EVENTS = 4_000
"""Events in one transaction: about 40 ms of work, so that one burst does not hold up everybody's next commit."""
DELTA_BYTES = 64 * KIB
"""One merged delta: the largest frame that the event streams send without cutting."""
COMMIT_BYTES = 16 * KIB
"""What a commit adds to the write-ahead log beside its events: about four pages."""
CHECKPOINT_BYTES = 4 * MIB
"""Committed since the last checkpoint: SQLite's own figure (1,000 pages)."""
WAL_BYTES = 64 * MIB
"""The write-ahead log: above it a commit waits once, so that reading does not slow down."""
EVENT_BYTES = 8 * MIB
"""One event: a large prompt with attachments fits; anything larger belongs into a blob."""
PENDING_BYTES = 64 * MIB
"""Posted and not yet durable, for the whole host: a disk that stalls for seconds, not a leak."""
FOLLOWER_BYTES = 8 * MIB
"""Queued for one follower: some seconds of the fastest stream; a slower reader comes back with its cursor."""
REPLAY_BYTES = 32 * KIB
"""One page of what a follower missed: small, since it is held for as long as its reader stands still."""
REPLAY_PAGES = 64
"""Pages kept for the next who asks for the same: after a restart everybody comes back to the same place."""
READ_EVENTS = 10_000
"""Events in one `read`: a long session in one go, about 2 MB."""
READ_BYTES = 8 * MIB
"""The same read in bytes: long texts come in several reads."""
BLOB_BYTES = 64 * MIB
"""One blob: a build's whole output or a large picture."""
RETENTION_HOURS = 24.0
"""Deltas of finished turns are kept this long, then compacted into their whole parts."""
BUSY_SECONDS = 5.0
"""How long another program may hold the database's lock (a backup) before a write counts as failed."""

# -- the host --------------------------------------------------------------------------------------------------
SESSIONS = 100_000
"""Stored sessions: what is known of one that rests stays in memory, about 3 KB."""
LIVE_TURNS = 1_000
"""Turns running at once: each may own a process of some 50 MB elsewhere."""
MESSAGE_BYTES = 4 * MIB
"""One message with its attachments; larger things are files in the workspace."""
QUEUE_LENGTH = 100
"""Messages waiting in one session: more is a script gone wild."""
FOLDERS = 32
"""Folders of one session beside its own: every file operation of its clients looks through all of them."""
TURN_BYTES = 32 * MIB
"""What one turn may say and its tools may print: thirty thick books. Its text stays in memory while it runs."""
CALL_BYTES = 16 * MIB
"""The output of one tool call: the whole log of a long build."""
SESSION_BYTES = 1024 * MIB
"""One session on the disk: a year of work. A longer one takes no messages; a fork goes on."""
DISK_RESERVE_BYTES = 256 * MIB
"""Free space that is left for the ends of what runs: with less no turn begins."""
DISK_SHARE = 0.5
"""Of its disk that the log may take before no turn begins: a machine has other things to store."""
CLIENT_DATA_BYTES = 16 * MIB
"""What clients keep beside one session: it stays in memory with the session. Fifty plugins with all their texts fit."""
CLIENT_DATA_KEYS = 5_000
"""How many of them: comments on lines and marks of what was looked at are one each."""
CONFIG_BYTES = 8 * MIB
"""All settings of one session: the text of another conversation may be among them."""
CLIENTS = 50
"""Clients that lend their tools to one session at once."""
CLIENT_BYTES = MIB
"""What one of them says of itself and its tools: every snapshot of the session has it."""
CLIENT_NAMES = 100
"""Clients of one session whose names are remembered: editors take a new id with every window."""
TITLE_CHARS = 200
"""A title: what a list can show."""
TOOL_OUTPUT_CHARS = 64 * KIB
"""Tool output kept inside the event; the whole output goes into a blob."""
GRANT_SECONDS = 12 * 3600.0
"""A working day; a remembered yes must end."""
CALLERS = 10_000
"""Tokens whose rate is remembered; one that was forgotten begins with a full burst."""
CLIENT_ID_CHARS = 200
"""A UUID with a name before it fits several times."""
GRANTS = 1_000
"""Remembered answers that have not ended: every approval looks through them."""
TURN_IDLE_SECONDS = 30 * 60.0
"""An agent that says nothing for this long is taken for dead."""
SILENCE_SECONDS = (20.0, 120.0, 600.0)
"""Without a word of the agent: then a person is told what the turn waits for. Vendors retry in silence for a minute."""
STEER_SECONDS = 5.0
"""An agent that has not taken a message into its turn by then gets it as its next one. The session waits meanwhile."""
CANCEL_SECONDS = 5.0
"""An agent that does not obey a cancel in this time is left behind; the turn ends anyway."""
STOP_SECONDS = 10.0
"""Graceful stop: running turns are asked to end, then the process goes."""
CHILD_DEPTH = 8
"""Sub-agents of sub-agents: deeper is a loop."""

# -- the doors -------------------------------------------------------------------------------------------------
REQUESTS_PER_SECOND = 200.0
REQUEST_BURST = 400
"""Messages per token: above any person, below what hurts; streams count once."""
REQUEST_ID_CHARS = 200
"""Of a caller's own id for a command: a UUID, a URL or a delivery's name fits many times."""
