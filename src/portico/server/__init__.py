"""The server: gate, HTTP and WebSocket, TLS, login, settings, home folder, start and stop.

It opens the host with its features and doors.
"""
