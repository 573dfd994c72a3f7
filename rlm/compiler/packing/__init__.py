"""How packing does it; ``rlm.compiler.packer`` says what it does. From the law down to plain arithmetic:

``fitting`` maximises class by class, ``twins`` prefers earlier units, ``groups`` ties cycles together; ``knapsack``
searches, ``exchange`` improves and ``pricing`` bounds, knowing only whole numbers. ``items`` has the nouns.
"""
