"""Memory of this process as Linux tells it."""

import re
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


def resident_mib() -> float:
    """Resident size now."""
    return _read("VmRSS")


def peak_mib() -> float:
    """Greatest resident size since ``forget_peak``."""
    return _read("VmHWM")


def forget_peak() -> None:
    """Let the peak begin anew from the present size."""
    _FORGET.write_text("5")


def _read(name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
