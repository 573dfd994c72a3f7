"""The gateway: one MCP server in front of many. It finds tools by the rules, calls them, and explains both.

Which tool is visible, and why one is not, comes from a compile. No module here decides it.
"""
