"""Shared rules for HTTP clients: bounded bodies, scrubbed secrets, proxies.

Providers use httpx, MCP uses httpx2. These modules import neither, so both clients share one set of rules.
"""
