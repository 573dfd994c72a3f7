"""Token counts: exact ones from a vocabulary on this machine, or an estimate on the high side."""

from rlm.compiler.tokens.token_counter import TokenCounter, counter

__all__ = ["TokenCounter", "counter"]
