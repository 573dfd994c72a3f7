"""Servers that speak the Model Context Protocol: connected to, listed, and called, through the official SDK.

Nothing here is loaded before a host names a server. What a server says is a stranger's text: it is bounded, checked,
and believed in nothing. What is started or connected to comes from the host's configuration alone.
"""
