"""Lines of stdin or of a file, in batches."""

import queue
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from .terminal import decode, stdin

QUEUE_SIZE = 1024  # number of lines read; whether these are all to hold while the model is busy
MAX_WAIT = 0.05  # seconds between two lines of a batch

TextLine = tuple[str, str | None]  # a line, or "" and the reason why it cannot be read


class _Lines:
    seen, all_seen = 0, False  # lines

    def progress(self, done: int, verb: str, file: str = "") -> str:
        """Return how many of the lines are done, and in which file. Lines that have not been read are not counted."""
        lines = f"{self.seen:,} lines" if self.all_seen else f"the {self.seen:,} lines read so far"
        again = ": delete it, or give another --out, to begin again" if file.endswith(".partial") else ""
        return f"stopped: {done:,} of {lines} were {verb}" + (f"; they are in {file}{again}" if file and done else "")


class StdinLines(_Lines):
    """Reads stdin in a thread, so that lines which have arrived are processed before later ones arrive."""

    def __init__(self) -> None:
        self._items: queue.Queue[bytes | OSError | None] = queue.Queue(QUEUE_SIZE)  # None: the end
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        end = None
        try:
            with stdin() as stream:
                for line in stream:
                    self.seen += 1
                    self._items.put(line)
        except OSError as error:
            end = error
        self.all_seen = True
        self._items.put(end)

    def batches(self, size: int) -> Iterator[list[bytes]]:
        """Yield all lines in order, in batches of those that have arrived: at least one line, at most `size`."""
        while isinstance(item := self._items.get(), bytes):
            batch = [item]
            while len(batch) < size:
                try:
                    item = self._items.get(timeout=MAX_WAIT)
                except queue.Empty:
                    break
                if not isinstance(item, bytes):
                    self._items.put(item)  # ends the outer loop
                    break
                batch.append(item)
            yield batch
        if item is not None:
            raise item

    def text_batches(self, size: int) -> Iterator[list[TextLine]]:
        for batch in self.batches(size):
            yield [_text_line(line) for line in batch]


def _text_line(line: bytes) -> TextLine:
    try:
        return decode(line, "it").removesuffix("\n").removesuffix("\r"), None
    except ValueError as error:
        return "", str(error)


class WholeFiles(_Lines):
    """Files that are one text each, such as articles: a file, the .txt and .md files of a folder, or stdin."""

    def __init__(self, place: str) -> None:
        folder = Path(place)
        self.files: list[Path | None] = [None if place == "-" else folder]
        if place != "-" and folder.is_dir():
            self.files = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in (".txt", ".md")]
        self.names = ["stdin" if file is None else file.name for file in self.files]
        self.seen, self.all_seen = len(self.files), True

    def text_batches(self, size: int) -> Iterator[list[TextLine]]:
        for first in range(0, len(self.files), size):
            yield [_whole(file) for file in self.files[first : first + size]]


def _whole(file: Path | None) -> TextLine:
    """Return the text of a file, of Markdown that of its paragraphs; or of stdin, if there is no file."""
    try:
        if file is None:
            with stdin() as stream:
                return decode(stream.read(), "stdin"), None
        text = decode(file.read_bytes(), file.name)
    except (OSError, ValueError) as error:
        return "", str(error)
    if file.suffix.lower() == ".md":
        from ..translation.markdown import plain_paragraphs

        text = "\n\n".join(plain_paragraphs(text))
    return text, None if text.strip() else "the file has no text"


class FileLines(_Lines):
    """The lines of a text file, plain or gzip."""

    def __init__(self, file: Path) -> None:
        from ..corpora.lines import count

        self.file, self.seen, self.all_seen = file, count(file), True

    def text_batches(self, size: int) -> Iterator[list[TextLine]]:
        from ..corpora.lines import Malformed, lines

        read = (line for _, line in lines(self.file))
        while batch := list(islice(read, size)):
            yield [("", line.reason) if isinstance(line, Malformed) else (line, None) for line in batch]


Reader = StdinLines | FileLines | WholeFiles
