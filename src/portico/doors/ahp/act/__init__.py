"""What AHP clients ask for: actions and commands of the protocol become commands of the host.
May import `wire` and `view`.
"""
