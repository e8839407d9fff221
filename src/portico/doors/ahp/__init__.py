"""The AHP door: the Agent Host Protocol over WebSocket, protocol version 1 and the channel dialect 0.5.1 to 1.0.0.
The reducers (v1, root, session, chat, terminal, changeset, annotations, automation) are pure functions over plain JSON.
They import nothing but `portico.errors`; what listens and dispatches may import the host, never another door.
"""

from portico.doors.ahp.door import AhpDoor

__all__ = ["AhpDoor"]
