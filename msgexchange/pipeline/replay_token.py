"""The token of a pre-flight: the set, and what was predicted of each message (spec 5.3).

It is data, not a right: whoever changes it only asks for something else, and what is carried out
is folded again. The checksum finds a token that was not copied whole.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from msgexchange.codec.encode import encode
from msgexchange.pipeline.letters import NotDone
from msgexchange.pipeline.prediction import Prediction

VERSION = "r1"
_BYTES_MAX = 8 << 20


def token_of(predictions: Sequence[Prediction]) -> str | None:
    """Of those that can be replayed; None if none can."""
    promises = [one.promise() for one in predictions if one.refused is None]
    if not promises:
        return None
    packed = base64.urlsafe_b64encode(zlib.compress(encode(promises), 9)).decode().rstrip("=")
    return f"{VERSION}.{packed}.{_sum(packed)}"


def promises_in(token: str) -> Sequence[Mapping[str, Any]]:
    """What it carries; ``NotDone`` if it is no token, or not whole."""
    version, _, rest = token.strip().partition(".")
    packed, _, checksum = rest.partition(".")
    if version != VERSION or checksum != _sum(packed):
        raise NotDone("this is no token of `run.py replay plan`, or not the whole of it")
    try:
        unpacker = zlib.decompressobj()
        octets = unpacker.decompress(
            base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), _BYTES_MAX
        )
        found = orjson.loads(octets)
        return [_checked(promise) for promise in found]
    except (binascii.Error, zlib.error, ValueError, TypeError, KeyError) as fault:
        raise NotDone("this is no token of `run.py replay plan`") from fault


def _checked(promise: Any) -> Mapping[str, Any]:
    essence = promise["essence"]
    return {
        "id": int(promise["id"]),
        "outcome": str(promise["outcome"]),
        "backwards": bool(promise["backwards"]),
        "digest": str(promise["digest"]),
        "essence": None if essence is None else {"changes": list(essence["changes"])},
    }


def _sum(packed: str) -> str:
    return f"{zlib.crc32(packed.encode()):08x}"
