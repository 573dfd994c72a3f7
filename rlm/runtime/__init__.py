"""What sends, waits and answers. One function reaches a provider: ``rlm.runtime.gate.send``."""
