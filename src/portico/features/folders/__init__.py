"""The folders of a session: which are added, removed and chosen for a conversation. May import the kernel."""
