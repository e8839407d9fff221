"""Features: each is a folder with its commands, events, rules, settings and one declaration (`Feature`).

`builtin` registers the commands and events of all of them. They import the kernel; the kernel imports none of them.
"""
