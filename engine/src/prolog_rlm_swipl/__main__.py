"""``rlm-swipl ARGS``: this package's SWI-Prolog at the keyboard, as ``swipl ARGS``."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from prolog_rlm_swipl import engine


def main() -> NoReturn:
    """Become SWI-Prolog, with the arguments of this process."""
    found = engine()
    if found is None:
        sys.exit("prolog-rlm-swipl has no engine for this Python on this platform: use the system's swipl")
    os.execv(found.program, [str(found.program), *sys.argv[1:]])  # noqa: S606 - this package's own program


if __name__ == "__main__":
    main()
