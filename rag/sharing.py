"""How processes share one collection: which of them writes, whether another has written since, and whether the seeds are being indexed.

Three files beside the collection's folder. Their names start with a dot, as no collection's does, so that no collection can be in their way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from rag.errors import LockedError

#: Two first questions asked at once both want to index the seeds (4 s here); the second waits for the first.
LOCK_WAIT_S = 120.0


class Sharing:
    """What one process knows of the others at a collection. Errors are the disk's, but for `LockedError`.

    Args:
        folder: the collection's; its parent must be there before anything is written.
    """

    def __init__(self, folder: Path) -> None:
        self._lock, self._written, self._seeding = (folder.with_name(f".{folder.name}.{what}") for what in ("lock", "written", "seeding"))
        self._seen = self._last_written()

    @property
    def seeding(self) -> bool:
        """Whether the bundled papers are being indexed here, or were when that was stopped."""
        return self._seeding.exists()

    @seeding.setter
    def seeding(self, value: bool) -> None:
        self._seeding.touch() if value else self._seeding.unlink(missing_ok=True)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Holds the right to write.

        Raises:
            LockedError: another process has held it for longer than LOCK_WAIT_S.
        """
        try:
            held = FileLock(self._lock).acquire(LOCK_WAIT_S)
        except Timeout:
            raise LockedError("Another process is writing to this collection.", "Wait until it is done, or end it, and try again.") from None
        with held:
            yield

    def written_since(self) -> bool:
        """Whether another process has written since this was last asked. Costs one `stat`."""
        last = self._last_written()
        new, self._seen = last != self._seen, last
        return new

    def mark_written(self) -> None:
        """Lets other processes know. Done before writing too: on a full disk the file could not be made afterwards."""
        self._written.touch()
        self._seen = self._last_written()

    def _last_written(self) -> int:
        """When a process last let go of the right to write, in nanoseconds; 0 if none ever held it."""
        try:
            return self._written.stat().st_mtime_ns
        except OSError:
            return 0
