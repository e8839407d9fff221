"""The facts that the log keeps: one tagged union of structs, the words that every room shares.

An event is never changed once it is written. A stream of deltas always ends in an event that carries the whole
content (`part.ended`, `tool.ready`, `tool.ended`), so deltas may be compacted away and readers still converge.
docs/reference/events.md describes each one; a test holds it true.

`by` is who did it: `token:NAME`, `person:NAME`, `client:ID`, `task:ID`, `job:ID`, `automation:ID`, `run:ID`, `host`,
`policy`, `timeout`. A client whose protocol wants its own words back is `client:ID#NUMBER.TYPE`; what stands before the
`#` is who it is.
"""

from portico.kernel.events.host import *
from portico.kernel.events.record import *
from portico.kernel.events.session import *
from portico.kernel.events.shapes import *
from portico.kernel.events.turn import *
