"""Corpora: reading, filtering, mixing and building. Imports no torch."""

from .document import DataError, Document
from .filters import Limits, Report
from .mixing import mix
from .readers import FORMATS, read
from .writing import write_jsonl

__all__ = ["FORMATS", "DataError", "Document", "Limits", "Report", "mix", "read", "write_jsonl"]
