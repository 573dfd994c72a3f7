"""Contexts: material that stays outside of prompts, handles to it, and bounded actions on it.

A ``Context`` (``context``) describes material, for example the files of a folder. A ``Store`` (``store``) holds the
contexts of one run and returns handles. A plan reads a context through its actions only (``arguments.ACTIONS``).
No code here selects what a model sees.
"""
