"""Many compiles or completions at once: worker processes, an event loop, or Ray."""
