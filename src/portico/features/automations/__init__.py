"""Automations: a trigger, a stored command and rules; each due time is claimed in the log before anything starts.

It may use the host, the interfaces of the log and the jobs, the settings' home folder and the watching of files.
"""
