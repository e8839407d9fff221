"""The protocol itself: versions, names, numbers, shapes of what comes and frames of what goes.
Nothing here knows the host.
"""
