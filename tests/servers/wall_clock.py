"""A wall clock that jumps under one process, while its monotonic clock goes on (libfaketime)."""

from collections.abc import Mapping
from pathlib import Path

from servers.private import missing_server

HOW_TO_GET = "apt-get install libfaketime"
LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1")


class WallClock:
    """``environment`` is what a process must be started with to live by it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "wall-clock"
        self.jump_to(0)

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump_to(self, offset_s: int) -> None:
        """So far from the true time, from now on."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{offset_s:+d}\n")
        draft.replace(self._file)


def _library() -> str:
    found = [path for pattern in LIBRARIES for path in Path("/").glob(pattern.lstrip("/"))]
    if not found:
        missing_server(f"no libfaketime: {HOW_TO_GET}")
    return str(found[0])
