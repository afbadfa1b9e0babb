"""A real engine for tests: llama.cpp's own server, on a model with random weights that is written here.

``python engine.py MODEL KEY`` writes the file MODEL, serves it on loopback, prints the address, and stops when its
standard input ends.
"""

import random
import struct
import sys
from array import array
from itertools import accumulate
from math import prod
from pathlib import Path

import xllamacpp

_CONTEXT, _WIDTH, _INNER, _LAYERS, _HEADS = 8192, 64, 128, 2, 1
_ALIGNED = 32
_WORDS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
_FIRST_BYTE = 3
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_LIKED = dict.fromkeys(range(32, 127), 2.0) | dict.fromkeys(b'"]}', 2.5) | {ord("\\"): 0.0}

_ABOUT = {
    "general.architecture": "llama",
    "llama.context_length": _CONTEXT,
    "llama.embedding_length": _WIDTH,
    "llama.block_count": _LAYERS,
    "llama.feed_forward_length": _INNER,
    "llama.attention.head_count": _HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": _WORDS,
    "tokenizer.ggml.scores": [0.0] * len(_WORDS),
    "tokenizer.ggml.token_type": [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256],
    "tokenizer.ggml.add_space_prefix": False,  # the engine's grammars begin with words of its own, as they are
}

_SHAPES = {"token_embd": (_WIDTH, len(_WORDS)), "output": (_WIDTH, len(_WORDS)), "output_norm": (_WIDTH,)}
for _layer in range(_LAYERS):
    _SHAPES |= {f"blk.{_layer}.attn_{name}": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "output")}
    _SHAPES |= {f"blk.{_layer}.ffn_{name}": (_WIDTH, _INNER) for name in ("gate", "up")}
    _SHAPES |= {f"blk.{_layer}.ffn_down": (_INNER, _WIDTH)}
    _SHAPES |= {f"blk.{_layer}.{name}_norm": (_WIDTH,) for name in ("attn", "ffn")}


def write_model(path: Path) -> None:
    """Writes a llama that reads and speaks single bytes, as GGUF.

    What it says is random, but mostly printable, and it is quick to end a text, a list and an object.

    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    dice = random.Random(0)  # noqa: S311 - the same model each time
    tensors = {
        name: array("f", [1] * shape[0] if len(shape) == 1 else (dice.gauss(0, 0.05) for _ in range(prod(shape))))
        for name, shape in _SHAPES.items()
    }
    for word in range(len(_WORDS)):  # what begins as 1 goes through all layers, and is weighed at the end
        tensors["token_embd"][word * _WIDTH] = 1
        tensors["output"][word * _WIDTH] = _LIKED.get(word - _FIRST_BYTE, 0.0)
    offsets = accumulate((4 * len(weights) for weights in tensors.values()), initial=0)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(_ABOUT))
    for name, value in _ABOUT.items():
        kind, packed = _packed(value)
        head += _text(name) + struct.pack("<I", kind) + packed
    for (name, shape), offset in zip(_SHAPES.items(), offsets, strict=False):
        head += _text(f"{name}.weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
    head += bytes(-len(head) % _ALIGNED)
    path.write_bytes(head + b"".join(weights.tobytes() for weights in tensors.values()))


def _packed(value: object) -> tuple[int, bytes]:
    """The number of a value's type, and the value. Whole numbers are unsigned, and signed in lists."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    kinds, items = zip(*map(_packed, value), strict=True)
    kind = 5 if kinds[0] == 4 else kinds[0]
    return 9, struct.pack("<IQ", kind, len(items)) + b"".join(items)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def serve(model: Path, key: str) -> None:
    """Serves a model until standard input ends."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.model_alias = {"random"}
    settings.api_keys = [key]
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.n_parallel, settings.n_ctx = 2, 2 * _CONTEXT
    settings.n_threads_http = 32  # a connection that is kept open keeps one
    settings.cpuparams.n_threads = 1  # more of them would hinder each other, the model being so small
    settings.n_gpu_layers, settings.warmup, settings.use_jinja = 0, False, True
    settings.offline, settings.ui = True, False
    settings.verbosity = 1  # errors alone
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)  # noqa: T201 - whoever started it waits for this
    sys.stdin.read()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    write_model(where)
    serve(where, key=sys.argv[2])
