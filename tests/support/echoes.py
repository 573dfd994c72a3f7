"""A key as a server may repeat it: in every spelling that a reader can undo."""

from __future__ import annotations

import base64
import json
import random
import re
import urllib.parse
from typing import Any


def echo(key: str, rng: random.Random) -> str:
    """The key in one spelling, drawn by ``rng``."""
    return rng.choice(_SPELLINGS)(key, rng)


def holds(key: str, text: str) -> bool:
    """Whether a reader could get the key out of a text: decoded again and again, with no code of the product."""
    seen: set[str] = set()
    todo = [text]
    while todo:
        shown = todo.pop()
        if shown in seen or len(seen) > 60:
            continue
        seen.add(shown)
        if key.lower() in re.sub(r"[\r\n]", "", shown).lower():
            return True
        todo += [urllib.parse.unquote(shown), re.sub(r"\\+(?=[u/x])", r"\\", shown)]
        todo.append(re.sub(r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})", _character, shown).replace("\\/", "/"))
        todo.append(re.sub(r"&#(\d{2,3});", lambda found: chr(int(found[1])), shown))
        todo += [_hex(run) for run in re.findall(r"[0-9a-fA-F]{16,}", shown)]
        for run in re.findall(r"[A-Za-z0-9+/_-]{12,}", re.sub(r"[\r\n]", "", shown)):
            todo += [_unpacked(run[start:]) for start in range(4)]
    return False


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1] or found[2], 16))


def _hex(run: str) -> str:
    return bytes.fromhex(run[: len(run) // 2 * 2]).decode("latin-1")


def _unpacked(run: str) -> str:
    run = run.replace("-", "+").replace("_", "/")
    run = run[:-1] if len(run) % 4 == 1 else run
    return base64.b64decode(run + "=" * (-len(run) % 4)).decode("latin-1")


def _escaped(key: str, rng: random.Random) -> str:
    share = rng.random()
    return "".join(f"\\u{ord(letter):04x}" if rng.random() <= share else letter for letter in key)


def _in_json(key: str, rng: random.Random) -> str:
    return json.dumps({"sent": "\\".join(["", _escaped(key, rng).removeprefix("\\")])})


def _percent(key: str, rng: random.Random) -> str:
    share = rng.random()
    once = "".join(f"%{ord(letter):02X}" if rng.random() <= share else letter for letter in key)
    return urllib.parse.quote(once) if rng.random() < 0.3 else once


def _packed(key: str, rng: random.Random) -> str:
    before, after = ("".join(rng.choices("Basic: xyz", k=rng.randrange(7))) for _ in range(2))
    pack: Any = rng.choice([base64.b64encode, base64.urlsafe_b64encode, base64.encodebytes])
    text: str = pack((before + key + after).encode()).decode()
    return text if rng.random() < 0.5 else text.strip().rstrip("=")


_SPELLINGS: list[Any] = [
    lambda key, rng: key,
    lambda key, rng: f"Bearer {key}",
    lambda key, rng: key.upper(),
    lambda key, rng: key.lower(),
    lambda key, rng: key.encode().hex(),
    lambda key, rng: key.encode().hex().upper(),
    lambda key, rng: "".join(f"&#{ord(letter)};" for letter in key),
    lambda key, rng: "".join(f"\\x{ord(letter):02x}" for letter in key),
    lambda key, rng: key[: len(key) // 2] + "\n" + key[len(key) // 2 :],
    _escaped,
    _in_json,
    _percent,
    _packed,
    _packed,
]
