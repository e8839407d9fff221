"""The AHP door: the Agent Host Protocol over WebSocket, protocol version 1 and the channel dialect 0.5.1 to 1.0.0.
Four floors, each of which may import those below it: `wire`, `view`, `act`, `connection`. The reducers that a client
folds actions with are in `portico.testing.ahp`; the host needs none of them.
"""

from portico.doors.ahp.door import AhpDoor

__all__ = ["AhpDoor"]
