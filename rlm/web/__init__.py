"""What every HTTP door needs, whichever library speaks HTTP there: bounded bodies, scrubbed secrets, proxies.

Providers use httpx, MCP uses httpx2. Nothing here imports either, so that both doors share one set of rules.
"""
