"""Static word vectors from the data of the package ``wordllama`` (MIT). The code of that package is not run.

The vector of a text is the mean of the vectors of its tokens. There are 32,000 tokens of 256 numbers each. This uses
no network, and loads 16 MB of numbers and no other model.
"""

from __future__ import annotations

import importlib.util
import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm import files
from rlm.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embedder = Callable[[Sequence[str]], Any]
"""From texts to one vector each: anything that numpy takes for an array of shape (texts, dimensions)."""

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
MOST_TOKENIZER_BYTES = 64 * 1024 * 1024
_KINDS = {"F16": "<f2", "F32": "<f4"}


def home() -> Path:
    """Return the folder of the package's data.

    Raises:
        ConfigurationError: ``no_vectors`` if ``wordllama`` or ``tokenizers`` is not installed.
    """
    package = importlib.util.find_spec(PACKAGE)
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    folder = Path(folders[0]) if folders else Path()
    reader = importlib.util.find_spec("tokenizers")
    if not folders or reader is None or not (folder / WEIGHTS).is_file() or not (folder / TOKENIZER).is_file():
        raise ConfigurationError(
            "no_vectors",
            "the word vectors are not installed: pip install 'prolog-rlm[semantic]', or give Sensor(embed)",
        )
    return folder


@cache
def embedder() -> Embedder:
    """Return the embedder of the static word vectors, loaded once a process.

    Raises:
        ConfigurationError: ``no_vectors`` if the package is not installed, or if its data have another form.
    """
    folder = home()
    from tokenizers import Tokenizer

    table = _table(folder / WEIGHTS)
    tokenizer: Any = Tokenizer.from_str(files.read_text(folder / TOKENIZER, MOST_TOKENIZER_BYTES))
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
    """Return the only matrix of a safetensors file, mapped into memory."""
    import numpy as np

    data = files.mapped(path)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    rows = [row for name, row in header.items() if name != "__metadata__"]
    if len(rows) != 1 or rows[0]["dtype"] not in _KINDS:
        raise ConfigurationError(
            "no_vectors",
            f"{path} has no matrix of a known form: pip install --force-reinstall 'prolog-rlm[semantic]'",
        )
    start = 8 + length + int(rows[0]["data_offsets"][0])
    shape = tuple(rows[0]["shape"])
    kind = _KINDS[rows[0]["dtype"]]
    return np.frombuffer(data, dtype=kind, count=math.prod(shape), offset=start).reshape(shape)
