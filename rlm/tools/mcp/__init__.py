"""Servers of the Model Context Protocol: connections, listings and calls, through the official SDK.

These modules are not loaded before a host names a server. Text of a server is third-party text: it is bounded and
checked, and never trusted. Only the host's configuration decides which program is started and which address is used.
"""
