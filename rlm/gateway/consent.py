"""Consent: a sealed question to the client's user about one call.

The seal is an HMAC over tool, version of the tool, digest of the arguments, revision of the settings, profile and
expiry. It is valid once. The client carries it and cannot change it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

MOST_STATE = 4096
"""Characters of a sealed question."""


@dataclass(frozen=True)
class Deed:
    """One call that needs consent."""

    tool: str
    version: str
    arguments: str
    settings: str
    profile: str

    @classmethod
    def of(cls, tool: str, version: str, arguments: Mapping[str, Any], settings: str, profile: str) -> Deed:
        """Return the deed of a call; ``arguments`` counts by its digest."""
        text = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return cls(tool, version, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), settings, profile)


class Consents:
    """Issues and redeems sealed questions.

    Args:
        seconds: the time that a question stays valid.
        clock: the time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._key = os.urandom(32)
        self.seconds, self._clock = seconds, clock
        self._used: dict[str, float] = {}
        self._guard = threading.Lock()

    def issue(self, deed: Deed) -> str:
        """Return the sealed state of a question."""
        row = {**asdict(deed), "expires": self._clock() + self.seconds, "nonce": os.urandom(12).hex()}
        body = base64.urlsafe_b64encode(json.dumps(row, sort_keys=True).encode()).decode()
        return f"{body}.{self._seal(body)}"

    def redeem(self, state: Any, deed: Deed) -> str:
        """Return the problem of a state for a deed, or an empty string. A good state is used up.

        The problems are ``forged``, ``expired``, ``other_call`` and ``used``.
        """
        if not isinstance(state, str) or len(state) > MOST_STATE or not state.isascii():
            return "forged"
        body, _, seal = state.rpartition(".")
        if not hmac.compare_digest(seal, self._seal(body)):
            return "forged"
        try:
            row = json.loads(base64.urlsafe_b64decode(body))
        except (ValueError, binascii.Error):
            return "forged"
        if row["expires"] < self._clock():
            return "expired"
        if any(row[field] != value for field, value in asdict(deed).items()):
            return "other_call"
        with self._guard:
            now = self._clock()
            self._used = {nonce: until for nonce, until in self._used.items() if until >= now}
            if row["nonce"] in self._used:
                return "used"
            self._used[row["nonce"]] = row["expires"]
        return ""

    def _seal(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()
