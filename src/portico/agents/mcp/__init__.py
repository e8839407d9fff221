"""The client's side of the Model Context Protocol: servers of tools that Portico itself talks to, over stdio or HTTP.

Who uses it: the built-in agent, and agents that cannot start a server themselves. Imports the supervisor and the
settings of servers; never a door.
"""
