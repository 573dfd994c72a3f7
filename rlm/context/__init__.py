"""Context that stays outside of prompts: what there is, handles to it, and actions that are bounded.

A ``Context`` (``context``) describes material. A ``Store`` (``store``) holds those of one run and gives handles; a plan
reads through its actions (``arguments.ACTIONS``) and through nothing else. Nothing here decides what a model is shown.
"""
