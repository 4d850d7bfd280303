"""Files of the data folder that say where a process can be reached."""

import threading
from collections.abc import Mapping
from pathlib import Path

URL_FILE = "http.url"
BOOTSTRAP_FILE = "kafka.bootstrap"
"""Of the embedded broker, with the time since which it holds what was sent."""


class AddressFiles:
    """The address files of one process, in a folder that several may share.

    ``writer`` is a name that no other process has: two that write at once each write a draft
    of their own.
    """

    def __init__(self, folder: Path, writer: str) -> None:
        self._folder = folder
        self._writer = writer
        self._written: dict[str, str] = {}
        self._one_at_a_time = threading.Lock()

    def write(self, addresses: Mapping[str, str], *, as_leader: bool) -> None:
        """Name the leader, or whoever came first. Any thread; ``OSError`` where it cannot.

        A file is there whole or not at all: others read it as soon as it appears. The last of
        ``addresses`` is written last: whoever reads it finds the others there.
        """
        with self._one_at_a_time:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, address in addresses.items():
                file = self._folder / name
                if as_leader or not file.exists():
                    draft = self._folder / f"{name}.{self._writer}"
                    draft.write_text(address + "\n")
                    draft.replace(file)
                    self._written[name] = address

    def remove(self) -> None:
        """Remove what this process wrote, unless another has put its own there since."""
        with self._one_at_a_time:
            for name, address in self._written.items():
                file = self._folder / name
                if file.is_file() and file.read_text().strip() == address:
                    file.unlink(missing_ok=True)
