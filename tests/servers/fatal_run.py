"""run.py with a decoder that ends the process, or hangs, at a text that says so."""

import os
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgexchange.app import main, steps
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.decode import decode
from msgexchange.codec.limits import Limits
from msgexchange.flight.messages import Decoded

FATAL = "FATAL-TO-DECODE"
HANGING = "HANGS-THE-DECODER"
EXIT_STATUS = 139


def decode_or_end(text: str, *rest: object) -> Decoded:
    if FATAL in text:
        os._exit(EXIT_STATUS)
    if HANGING in text:
        threading.Event().wait()
    catalogue, limits, timezone = rest
    assert isinstance(catalogue, Catalogue)
    assert isinstance(limits, Limits)
    return decode(text, catalogue, limits, timezone)  # type: ignore[arg-type]


vars(steps)["decode"] = decode_or_end

if __name__ == "__main__":
    sys.exit(main())
