"""Secrets go out of every text from outside, in every spelling, and nothing else does."""

from __future__ import annotations

import base64
import doctest
import itertools
import json
import random
import re
import string
import time
import urllib.parse

import pytest

import rlm.web.secrets
from rlm.errors import valid_text
from rlm.web.secrets import LEAST_SECRET, REDACTED, Secrets
from tests.support.echoes import echo, holds

KEY = "sk-live_0123456789aBcDeF+/=QqZz"


def test_the_example_in_the_docstring_holds() -> None:
    assert doctest.testmod(rlm.web.secrets).failed == 0


def test_a_key_is_found_in_two_thousand_random_spellings() -> None:
    rng = random.Random(11)
    secrets = Secrets([KEY])
    for _ in range(2000):
        text = f"before \N{SNOWMAN} {echo(KEY, rng)} \\n%20 after"
        assert holds(KEY, text), text  # else the spelling proves nothing
        scrubbed = secrets.scrub(text)
        assert not holds(KEY, scrubbed), (text, scrubbed)
        assert scrubbed.startswith("before \N{SNOWMAN} ")
        assert scrubbed.endswith(" \\n%20 after")
        assert REDACTED in scrubbed


@pytest.mark.parametrize("length", range(LEAST_SECRET, 40))
def test_base64_is_found_at_every_alignment_for_every_length(length: int) -> None:
    rng = random.Random(length)
    key = "".join(rng.choices(string.ascii_letters + string.digits, k=length))
    for before in range(6):
        for after in range(4):
            packed = base64.b64encode(b"x" * before + key.encode() + b"y" * after).decode()
            assert not holds(key, Secrets([key]).scrub(packed)), (before, after)


def test_a_text_that_arrives_in_pieces_is_scrubbed_as_the_whole_is() -> None:
    rng = random.Random(12)
    secrets = Secrets([KEY])
    for _ in range(1500):
        text = f"one {echo(KEY, rng)} two {echo(KEY, rng)[: rng.randrange(40)]}"
        cuts = sorted({rng.randrange(len(text) + 1) for _ in range(rng.randrange(12))} | {0, len(text)})
        told, waiting = [], ""
        for start, end in itertools.pairwise(cuts):
            waiting = secrets.scrub(waiting + text[start:end])
            ready = len(waiting) - secrets.held(waiting)
            told.append(waiting[:ready])
            waiting = waiting[ready:]
            assert not holds(KEY, "".join(told))
        assert "".join(told) + waiting == secrets.scrub(text), (text, cuts)


def test_text_without_a_key_is_told_at_once() -> None:
    secrets = Secrets([KEY])
    assert [secrets.held(text) for text in ("hello", "hello ", "100 % sure", "a \\n", "", "你好")] == [0] * 6
    assert secrets.held("it begins with sk-li") == 5


def test_other_text_is_left_alone() -> None:
    rng = random.Random(13)
    secrets = Secrets([KEY])
    letters = string.printable + "äßé你🙂\ud800"
    for _ in range(500):
        text = "".join(rng.choices(letters, k=200))
        assert secrets.scrub(text) == text


@pytest.mark.parametrize("short", ["", "abc", "ollama", "1234567"])
def test_a_value_too_short_to_be_told_from_words_destroys_no_text(short: str) -> None:
    assert Secrets([short]).scrub(f"an {short} in a text") == f"an {short} in a text"
    assert not Secrets([short])


def test_texts_and_keys_of_data_are_scrubbed_and_numbers_stay() -> None:
    data = {"a": [KEY, 12345678, None, {KEY: True}], "b": "x"}
    before = json.dumps(data)
    assert Secrets([KEY, "12345678"]).scrub(data) == {"a": [REDACTED, 12345678, None, {REDACTED: True}], "b": "x"}
    assert json.dumps(data) == before


def test_arguments_of_a_call_stay_json_text() -> None:
    rng = random.Random(14)
    for _ in range(300):
        spelled = "".join(f"\\u{ord(letter):04x}" if rng.random() < 0.5 else letter for letter in KEY)
        arguments = f'{{"path": "C:\\\\{spelled}", "n": [1]}}'
        assert json.loads(arguments)["path"] == f"C:\\{KEY}"
        assert KEY not in json.dumps(json.loads(Secrets([KEY]).scrub(arguments)))


def test_deep_data_costs_no_recursion() -> None:
    deep: list[object] = []
    for _ in range(20_000):
        deep = [deep, KEY]
    assert Secrets([KEY]).scrub(deep)[1] == REDACTED
    while deep:  # Python frees deep lists by recursion of its own
        deep = deep[0]  # type: ignore[assignment]


def test_a_key_with_quotes_backslashes_or_percent_signs_is_found() -> None:
    for key in ('quo"te\\back\\slash', "per%41cent%20key", "tab\\u0041escape", "ünïcode-pässword"):
        for text in (key, json.dumps(key), json.dumps({"k": json.dumps(key)})):
            assert Secrets([key]).scrub(text) != text, text


def test_a_repr_says_how_many_and_not_which() -> None:
    assert KEY not in repr(Secrets([KEY]))


def test_a_text_of_megabytes_is_scrubbed_in_time_that_grows_with_it() -> None:
    secrets = Secrets([KEY])
    costs = []
    for size in (200_000, 1_600_000):
        for text in ("\\" * size, "%25" * (size // 3), KEY[:20] * (size // 20), "sk-" * (size // 3)):
            began = time.process_time()
            secrets.scrub(text)
            secrets.held(text)
            costs.append(time.process_time() - began)
    assert max(costs) < 5, costs


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert valid_text("a\ud800b\ud83d\ude00") == "a\ufffdb\U0001f600"


def _entities(text: str) -> str:
    return "".join(f"&#{ord(letter)};" for letter in text)


COMPOSED = {
    "entities of entities": _entities(KEY).replace("&", "&amp;"),
    "entities three times": _entities(KEY).replace("&", "&amp;amp;"),
    "named entities": KEY.replace("/", "&sol;")
    .replace("+", "&plus;")
    .replace("=", "&equals;")
    .replace("_", "&lowbar;"),
    "entities in a URL": urllib.parse.quote(_entities(KEY), safe=""),
    "a URL in JSON": "".join(f"\\u0025{ord(letter):02x}" for letter in KEY),
    "JSON in entities": "".join(f"&#92;u{ord(letter):04x}" for letter in KEY),
    "JSON in a URL": urllib.parse.quote("".join(f"\\u{ord(letter):04x}" for letter in KEY), safe=""),
    "escapes of JavaScript": "".join(f"%u{ord(letter):04x}" for letter in KEY),
    "UTF-16 read as bytes": KEY.encode("utf-16-le").decode("latin-1"),
    "UTF-16 in JSON": json.dumps(KEY.encode("utf-16-be").decode("latin-1")),
    "folded lines": f"{KEY[:9]}\r\n   {KEY[9:]}",
    "base64 in folded lines": "\n  ".join(re.findall(".{1,12}", base64.b64encode(KEY.encode()).decode())),
}


@pytest.mark.parametrize("what", COMPOSED)
def test_escapes_inside_of_other_escapes_hide_no_key(what: str) -> None:
    secrets, text = Secrets([KEY]), COMPOSED[what]
    scrubbed = secrets.scrub(f"one {text} two")
    told, waiting = "", ""
    for letter in f"one {text} two":
        waiting = secrets.scrub(waiting + letter)
        ready = len(waiting) - secrets.held(waiting)
        told, waiting = told + waiting[:ready], waiting[ready:]
    for shown in (scrubbed, told + waiting):
        rest = re.fullmatch(r"one \"?(.*?)=*\"? two", shown)
        assert rest is not None, shown
        left = rest[1].replace("\0", "").replace("\\u0000", "")
        assert left.startswith(REDACTED)
        assert len(left) <= len(REDACTED) + 1  # base64: the last letter has bits of what follows, too


def test_text_with_escapes_of_escapes_and_no_key_stays() -> None:
    text = "AT&amp;amp;T &eacute; %2525 %u00e9 \\\\u005cn \0\t&nbsp;"
    assert Secrets([KEY]).scrub(text) == text
