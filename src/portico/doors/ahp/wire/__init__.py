"""The wire protocol: versions, names, numbers, types of incoming data and outgoing frames.
Nothing here imports the host.
"""
