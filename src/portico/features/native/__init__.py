"""Sessions that were started in an agent's own program: listing, adoption, import of new messages, and the way back.

May import the core and the agents' interface (`agents/native.py`)."""
