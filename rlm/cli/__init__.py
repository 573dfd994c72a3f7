"""The command line. It parses, calls the library and prints; it decides nothing."""

from __future__ import annotations


def main() -> None:
    """Entry point of ``rlm``."""
    from rlm.cli.app import run

    run()
