"""Map the arrays of a file in the safetensors format into memory."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES: Final = {"F16": "<f2", "I16": "<i2", "I32": "<i4", "U8": "u1"}  # from the name to numpy's


def map_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by their names, mapped into memory and read-only.

    The operating system reads a part of the file when it is used, and processes share it. Raises
    OSError if the file cannot be read. A damaged file is not expected: it may raise other errors.
    """
    import numpy as np

    # The length of the header, the header in JSON, and the bytes of the arrays.
    with path.open("rb") as file:
        (header_length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_length))
    data = np.memmap(path, np.uint8, "r", 8 + header_length)

    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        start, end = tensor["data_offsets"]
        values = data[start:end].view(_TYPES[tensor["dtype"]])
        tensors[name] = values.reshape(tensor["shape"])
    return tensors
