"""Corpora: read, filter, mix, build. No framework knowledge: texts in, texts out."""

from .document import DataError, Document
from .filters import Limits, Report
from .mixing import mix
from .readers import FORMATS, read
from .writing import write_jsonl

__all__ = ["FORMATS", "DataError", "Document", "Limits", "Report", "mix", "read", "write_jsonl"]
