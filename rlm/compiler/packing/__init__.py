"""How packing does it; ``rlm.compiler.packing.pack`` says what it does. From the law down to plain arithmetic:

``fitting`` maximises class by class, ``twins`` prefers earlier units, ``groups`` ties cycles together. ``knapsack``
searches, ``losses`` says among what, ``exchange`` improves and ``pricing`` bounds: these know whole numbers only.
``items`` has the nouns.
"""
