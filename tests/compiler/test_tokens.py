# ruff: noqa: RUF001 - text of every script is the point
"""Token counts: exact from what is on the machine, otherwise high; never a download, a crash or a hang."""

from __future__ import annotations

import base64
import concurrent.futures
import gzip
import hashlib
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken_ext.openai_public as definitions
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm.compiler.tokens import token_counter as tokens
from rlm.compiler.tokens import vocabulary
from rlm.compiler.tokens.common_words import STEMS, SUFFIXES, WORDS
from rlm.compiler.tokens.estimate import estimate
from rlm.compiler.tokens.token_counter import TokenCounter, additive, counter
from rlm.errors import ConfigurationError

_package_data = vocabulary._package_data
NAMES = ("o200k_base", "cl100k_base")

PROSE = """
When the river rose for the third time that spring, the people of the valley did what their parents had done before
them: they carried the seed, the tools and the oldest chairs up to the church, and waited. Nobody complained. The
miller counted his sacks twice and wrote the number on the door, because he trusted chalk more than memory. In the
evening the children were allowed to sit on the wall and watch the water take the fences away, one after another, as
if it were reading them. By the next morning the fields had become a lake, and the sky lay in it without a wrinkle. It
would be weeks before anyone could see how much soil was gone, and years before the argument about the dam, which had
been promised and planned and paid for, came to an end. Still, there was bread, and there were letters to answer, and
a teacher who thought that a flood was an excellent reason to explain how rivers work.
"""

CODE = '''
def read_lines(path: Path, *, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a file, without their ends."""
    with path.open(encoding=encoding) as stream:
        return [line.rstrip("\\n") for line in stream if not line.startswith("#")]
'''

SCHEMA = (
    '{"type":"object","properties":{"repo":{"type":"string","description":"owner/name"},"limit":{"type":"integer",'
    '"minimum":1,"default":30}},"required":["repo"],"additionalProperties":false}'
)

SAMPLES = (
    PROSE,
    PROSE.upper(),
    CODE,
    CODE.replace("    ", "\t"),
    SCHEMA,
    "今天天气很好，我们一起去公园散步吧。机器学习模型的训练需要大量的数据。",
    "今日は天気がとても良いので、公園へ散歩に行きましょう。ハローワールド。",
    "오늘은 날씨가 매우 좋아서 공원에 산책하러 갑시다.",
    "Сегодня очень хорошая погода, давайте пойдём гулять в парк.",
    "Größere Änderungen müssen überprüft werden; l'été dernier, où êtes-vous allés ?",
    "الطقس جميل اليوم، هيا بنا إلى الحديقة. השמש זורחת היום.",
    "आज मौसम बहुत अच्छा है। วันนี้อากาศดีมาก",
    "😀👩‍👩‍👧‍👦🏳️‍🌈🇨🇭 ½ ∑ ∂x/∂t → ∞ ✓ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U000e0041\U0010fffd",
    "zxqj QZXV aBcDeF x1y2z3 0xDEADBEEF 550e8400-e29b-41d4-a716-446655440000 aGVsbG8gd29ybGQ=",
    "|---|---|\n| a | b |\n```python\nx\n```\n\n\n\n   \t  \r\n \x0b\x0c \x00\x1b[31m",
)


def texts() -> st.SearchStrategy[str]:
    """Text of any kind, from every plane, and the kinds of text that tokenizers are made for."""
    letters = st.text("abcdefghijklmnopqrstuvwxyz ABCDE_-'", max_size=40)
    marks = st.text("{}[]():;,.\"'`/\\<>=|#*- \n\t\r019aZ", max_size=40)
    blanks = st.text(" \n\t\r\x0b\x85\xa0\u2028\u3000x/", max_size=40)
    words = st.lists(st.sampled_from(sorted(STEMS | WORDS)), max_size=8).map(" ".join)
    return st.one_of(st.text(max_size=60), letters, marks, blanks, words, st.sampled_from(SAMPLES))


@pytest.fixture(params=NAMES)
def exact(request: pytest.FixtureRequest) -> TokenCounter:
    return counter(request.param)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No vocabulary on this machine: an empty cache directory, which is returned, and no package with data."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(vocabulary, "_package_data", lambda package, path: None)
    return tmp_path


def packed(name: str) -> bytes:
    data = _package_data("bpe_openai", f"data/{name}.tiktoken.gz")
    assert data is not None
    return gzip.decompress(data)


@pytest.fixture(scope="module")
def references() -> dict[str, Any]:
    """tiktoken's own definitions of the two encodings, given the same data."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            rows = [line.split() for line in packed(name).splitlines()]
            ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
            patch.setattr(definitions, "load_tiktoken_bpe", lambda *_, ranks=ranks, **__: ranks)
            made[name] = tiktoken.Encoding(**getattr(definitions, name)())
    return made


# -- exact ------------------------------------------------------------------------------------------


def test_counts_are_exact_here(exact: TokenCounter) -> None:
    assert exact.exact
    assert exact.source in ("tiktoken's cache", "bpe-openai")
    assert "exact" in repr(exact)


@settings(max_examples=400, deadline=None)
@given(text=texts())
def test_counts_are_those_of_tiktoken_s_own_definition(references: dict[str, Any], text: str) -> None:
    for name in NAMES:
        assert counter(name).count(text) == len(references[name].encode(text, disallowed_special=()))


@pytest.mark.parametrize("name", NAMES)
def test_ranks_and_special_tokens_are_tiktoken_s(references: dict[str, Any], name: str) -> None:
    assert vocabulary._ranks(packed(name)) == references[name]._mergeable_ranks
    assert vocabulary.VOCABULARIES[name].special == references[name]._special_tokens


def test_names_of_special_tokens_count_as_text(exact: TokenCounter) -> None:
    assert exact.count("<|endoftext|>") > 3
    assert exact.count("<|endoftext|>") == exact.count("<|endofTEXT|>".replace("TEXT", "text"))


def test_lone_surrogates_do_not_crash() -> None:
    broken = "a\ud800b" + "\udfff" * 100_000
    assert 1_000 < most(broken) <= counter(tokens.ESTIMATE).count(broken)


@settings(max_examples=500, deadline=None)
@given(parts=st.lists(st.one_of(st.text(" \t\n\r\xa0\u2028/", max_size=12), texts()), max_size=8))
@example(["x", "   ", "y"])
@example(["!\n", "  ", "\n", "    ", "/"])
@example(["don't ", "a" * 9, " b c\n/d\n# e"])
def test_cutting_a_long_text_changes_no_count(parts: list[str]) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "LONG", 3)
        patch.setattr(vocabulary, "BLANK", 0)
        patch.setattr(vocabulary, "_LONG_BLANK", re.compile(vocabulary._LONG_BLANK.pattern.replace("4096", "2")))
        for name in NAMES:
            cut = counter(name)._measure(text)
            assert cut == len(encoding(name).encode_ordinary(text))


def encoding(name: str) -> Any:
    return counter(name)._measure.__self__._encoding  # type: ignore[attr-defined]


HUGE = {
    "letters": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "spaces before a word": " " * 1_000_000 + "x",
    "spaces before a line end": " " * 1_000_000 + "\n",
    "spaces after a mark": "!" + " " * 1_000_000 + "/",
    "no-break spaces": "\xa0" * 1_000_000 + "!",
    "tabs": "\t" * 1_000_000 + "\u00e9",
    "line ends": "\n" * 1_000_000,
    "slashes": "\n/" * 500_000,
    "marks": "}" * 1_000_000,
    "ideographs": "\u4e2d" * 500_000,
    "emoji": "\U0001f600" * 500_000,
    "medium blanks": ("x" + " " * 4_095) * 250,
}


@pytest.mark.parametrize("what", HUGE)
@pytest.mark.parametrize("name", [*NAMES, tokens.ESTIMATE])
def test_a_million_characters_neither_crash_nor_hang(name: str, what: str) -> None:
    start = time.thread_time()
    assert counter(name).count(HUGE[what]) > 1000
    assert time.thread_time() - start < 20


# -- adding up --------------------------------------------------------------------------------------


@st.composite
def blocks(draw: st.DrawFn) -> str:
    return draw(st.sampled_from("#<")) + draw(texts()) + draw(st.sampled_from(("", "", " ", "\n", "\u2028"))) + "\n"


@settings(max_examples=600, deadline=None)
@given(st.lists(blocks(), min_size=2, max_size=4))
@example(["# a  \n", "# b\n"])
@example(["#!\r\n\n", "<b>\n"])
@example(["<a>\n/\n", "<//\n"])
@example(["# don'\n", "#'s\n"])
@example(["#\u3000\u2028\n", "#\n"])
@example(["<|endof\n", "<|endoftext|>\n"])
def test_the_tokens_of_blocks_add_up(several: list[str]) -> None:
    assert all(additive(block) for block in several)
    for name in NAMES:
        assert counter(name).count("".join(several)) == sum(counter(name).count(block) for block in several)


@pytest.mark.parametrize("block", ["", "#", "a\n", "# a", "# a\n ", " # a\n", "\n", "/\n"])
def test_what_is_no_block_is_not_called_additive(block: str) -> None:
    assert not additive(block)


def test_texts_that_are_no_blocks_may_not_add_up(exact: TokenCounter) -> None:
    for first, second in (("<a>\n", "/\n"), ("# a", "# b\n"), ("# a\n", "\n# b\n"), ("# a\n ", "b\n")):
        assert not (additive(first) and additive(second))
    assert exact.count("# a" + "# b\n") <= exact.count("# a") + exact.count("# b\n")
    assert exact.count("\n\n") < 2 * exact.count("\n")


# -- where vocabularies come from -------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigurationError, match=r"'o200k-base'.*did you mean 'o200k_base'") as caught:
        counter("o200k-base")
    assert caught.value.kind == "unknown_tokenizer"


def test_there_is_one_counter_per_name() -> None:
    assert counter("o200k_base") is counter() is counter("o200k_base")


def cached(directory: Path, name: str, data: bytes) -> Path:
    url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    file = directory / hashlib.sha1(url.encode()).hexdigest()
    file.write_bytes(data)
    return file


def test_tiktoken_s_cache_comes_first(nowhere: Path) -> None:
    cached(nowhere, "cl100k_base", packed("cl100k_base"))
    made = tokens._made("cl100k_base")
    assert (made.exact, made.source) == (True, "tiktoken's cache")
    assert made.count(PROSE) == counter("cl100k_base").count(PROSE)


def test_the_older_name_of_the_cache_directory_is_known(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(nowhere, "cl100k_base", packed("cl100k_base"))
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(nowhere))
    assert tokens._made("cl100k_base").source == "tiktoken's cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # tiktoken's way to say: no cache
    assert not tokens._made("cl100k_base").exact


def test_a_damaged_cache_file_is_passed_over_and_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    file = cached(tmp_path, "cl100k_base", packed("cl100k_base")[:-10])
    assert tokens._made("cl100k_base").source == "bpe-openai"
    assert file.exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", gzip.compress(b"IQ== 0\n"), gzip.compress(b"IQ== 0\n")[:-5]],
    ids=["nothing", "no gzip", "another vocabulary", "cut short"],  # gzip writes the time of day
)
def test_damaged_package_data_lead_to_an_estimate(nowhere: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(vocabulary, "_package_data", lambda package, path: data)
    assert not tokens._made("o200k_base").exact


def test_without_a_vocabulary_counts_are_marked_estimated(nowhere: Path) -> None:
    made = tokens._made("o200k_base")
    assert (made.name, made.exact, made.source) == ("o200k_base", False, "estimate")
    assert made.count(PROSE) == estimate(PROSE)
    assert list(nowhere.iterdir()) == []


def test_without_tiktoken_counts_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert not tokens._made("o200k_base").exact


def test_a_package_that_is_not_there_has_no_data() -> None:
    assert vocabulary._package_data("no_such_package_anywhere", "data/x") is None
    assert vocabulary._package_data("json", "data/x") is None


_OFFLINE = """
import socket, sys
def refuse(*args, **kwargs):
    raise SystemExit("something reached for the network")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
import rlm.compiler.tokens.token_counter as tokens
early = sorted(name for name in sys.modules if name.partition(".")[0] in ("tiktoken", "bpe_openai"))
made = tokens.counter("o200k_base")
late = sorted(name for name in sys.modules if name.partition(".")[0] in ("bpe_openai", "requests"))
print(early, made.exact, made.count("Hello, world!"), late)
"""


@pytest.mark.parametrize("hidden", [False, True])
def test_nothing_loads_early_no_foreign_code_runs_and_nobody_reaches_for_the_network(
    tmp_path: Path, hidden: bool
) -> None:
    code = _OFFLINE
    if hidden:
        code = code.replace(
            "made =", "import rlm.compiler.tokens.vocabulary as v; v._package_data = lambda *_: None\nmade ="
        )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"TIKTOKEN_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == ("[] False 4 []" if hidden else "[] True 4 []"), done.stderr


# -- estimates --------------------------------------------------------------------------------------


def most(text: str) -> int:
    return max(counter(name).count(text) for name in NAMES)


@settings(max_examples=1500, deadline=None)
@given(text=texts())
def test_estimates_err_on_the_high_side(text: str) -> None:
    assert estimate(text) >= most(text)


@pytest.mark.parametrize("text", SAMPLES, ids=range(len(SAMPLES)))
def test_estimates_are_high_for_every_kind_of_text(text: str) -> None:
    assert estimate(text) >= most(text)
    assert estimate(text * 7) >= most(text * 7)


SCRIPTS = {
    "ascii": (0x20, 0x7F),
    "latin": (0xA0, 0x250),
    "greek and cyrillic": (0x370, 0x530),
    "hebrew and arabic": (0x590, 0x700),
    "indic and thai": (0x900, 0xE80),
    "punctuation and symbols": (0x2000, 0x2C00),
    "kana": (0x3000, 0x3100),
    "ideographs": (0x4E00, 0xA000),
    "hangul": (0xAC00, 0xD7A4),
    "emoji": (0x1F300, 0x1FA00),
    "everything": (0, 0x110000),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_estimates_are_high_for_random_text_in_every_script(script: str) -> None:
    dice = random.Random(script)
    low, high = SCRIPTS[script]
    for _ in range(1500):
        codes = (dice.randrange(low, high) for _ in range(dice.randint(1, 30)))
        text = "".join(chr(code) if not 0xD800 <= code < 0xE000 and dice.random() > 0.1 else " " for code in codes)
        assert estimate(text) >= most(text), repr(text)


def spellings(word: str) -> Iterator[str]:
    for spelt in (word, word.capitalize()):
        yield spelt
        yield " " + spelt


@pytest.mark.parametrize("name", NAMES)
def test_common_words_are_one_token_and_two_with_a_suffix(name: str) -> None:
    encode = encoding(name).encode_ordinary
    for word in STEMS | WORDS:
        assert all(len(encode(text)) == 1 for text in spellings(word)), word
    for stem in STEMS:
        for suffix in SUFFIXES:
            assert all(len(encode(text)) <= 2 for text in spellings(stem + suffix)), stem + suffix


@pytest.mark.parametrize(("text", "ratio"), [(PROSE, 2.2), (CODE, 1.8), (SCHEMA, 1.8)], ids=["prose", "code", "schema"])
def test_estimates_are_not_wildly_high(text: str, ratio: float) -> None:
    assert most(text) <= estimate(text) <= ratio * most(text)


# -- the cache --------------------------------------------------------------------------------------


def test_a_text_is_measured_once() -> None:
    seen: list[str] = []
    made = TokenCounter("test", lambda text: seen.append(text) or len(text), exact=True, source="test")
    long = "x" * 100_000
    assert [made.count(text) for text in ("a", "a", long, long[:-1] + "x", "")] == [1, 1, 100_000, 100_000, 0]
    assert seen == ["a", long, ""]


def test_the_cache_is_bounded_in_bytes_and_keeps_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "CACHE_BYTES", 100_000)
    seen: list[str] = []
    made = TokenCounter("test", lambda text: seen.append(text) or 1, exact=True, source="test")
    for number in range(2_000):
        made.count(f"{number:0100}")
        made.count("kept")
    kept = [*made._young, *made._old]
    assert sum(map(sys.getsizeof, kept)) <= 100_000
    assert seen.count("kept") == 1
    assert len(seen) == 2_001


def test_many_threads_count_alike(exact: TokenCounter) -> None:
    many = [f"{number} {PROSE[number % 700 :]}" for number in range(200)] * 4
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(exact.count, many)) == [exact.count(text) for text in many]
