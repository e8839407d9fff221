"""Notices: notify people when they are needed or when something has ended, by webhooks and programs of the owner.

It may use the host, the settings, processes, and the question that budgets ask.
"""
