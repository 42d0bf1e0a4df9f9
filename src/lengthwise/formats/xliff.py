"""XLIFF 1.2 and 2.x (.xlf, .xliff): sources, targets, and the limits in their attributes and notes."""

import re
from collections.abc import Iterator
from dataclasses import replace

from . import xml
from .base import Document, Edit, Entry, Format, Limit, Place
from .limits import limits_in
from .xml import Element

# The content of these elements is code of the original file, which readers do not see.
CODE = re.compile(
    r"<(?P<name>(?:\w+:)?(?:ph|bpt|ept|it))\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*(?<!/)>.*?</(?P=name)\s*>", re.DOTALL
)
_SIZE_UNITS = {"char": "chars", "byte": "bytes", "pixel": "pixels"}
_GENERAL = {"xliff:codepoints": "chars", "": "chars"}  # units of the profiles of sizes (2.x); others are not counted
_STORAGE = {"xliff:utf8": "bytes", "": "bytes", "xliff:utf16": "UTF-16 bytes", "xliff:utf32": "UTF-32 bytes"}
# Flags of the states of a target (1.2). New: it is no translation yet.
_STATES = {"new": "new", "needs-translation": "new", "needs-review-translation": "unfinished"}
_STATES |= {"final": "final", "signed-off": "final"}
_TOO_LONG = "lengthwise:length"  # the subState (2.x) of a translation that needs a review


def entries(document: Document) -> Iterator[Entry]:
    """Yield one entry for each trans-unit (1.2) or segment (2.x)."""
    root = xml.parse(document)
    if root.name != "xliff":
        raise document.error(root.start, f"the root element of an XLIFF file is <xliff>; got <{root.name}>")
    second = root.attributes.get("version", "1.2").startswith("2")
    files = [child for child in root.children if child.name == "file"]
    for file in files:
        prefix = f"{file.attributes.get('id' if second else 'original', '')}#" if len(files) > 1 else ""
        yield from (_units_2 if second else _units_1)(document, file, prefix)


def _units_1(document: Document, file: Element, prefix: str) -> Iterator[Entry]:
    for unit in file.find_all("trans-unit"):
        source = unit.child("source")
        if source is None:
            raise document.error(unit.start, "a trans-unit has no source")
        attributes = unit.attributes
        flags = {"approved"} if attributes.get("approved") == "yes" else set()
        target = unit.child("target")
        state = target.attributes.get("state", "") if target is not None else ""
        flags |= {_STATES[state]} if state in _STATES else set()
        limits = [*_widths(document, unit), *_notes(document, unit)]
        name = prefix + (attributes.get("id") or attributes.get("resname") or "")
        yield _entry(document, unit, source, name, limits, flags)


def _widths(document: Document, unit: Element) -> Iterator[Limit]:
    """Yield the limit of `maxwidth`, of the unit or of a group around it; without size-unit it is in pixels."""
    for element in unit.ancestors():
        found = element.attributes
        if element.name in ("trans-unit", "group") and (width := found.get("maxwidth", "").strip()):
            given = found.get("size-unit", "pixel")
            if width.replace(".", "", 1).isdigit() and float(width) > 0:
                said = f'maxwidth="{width}"' + (f' size-unit="{given}"' if "size-unit" in found else "")
                at = document.line(element.start)
                yield Limit(int(float(width)), _SIZE_UNITS.get(given, given), said, document.path, at)
            return


def _units_2(document: Document, file: Element, prefix: str) -> Iterator[Entry]:
    profiles = file.child("profiles")
    named = profiles.attributes if profiles else {}
    general, storage = named.get("generalProfile", ""), named.get("storageProfile", "")
    kinds = {"sizeRestriction": _GENERAL.get(general, general), "storageRestriction": _STORAGE.get(storage, storage)}
    for unit in file.find_all("unit"):
        segments = [child for child in unit.children if child.name == "segment"]
        shared_by = prefix + unit.attributes.get("id", "") if len(segments) > 1 else ""
        gaps = _gaps(document, unit)
        for number, segment in enumerate(segments, 1):
            source = segment.child("source")
            if source is None:
                raise document.error(segment.start, "a segment has no source")
            told = (*_restrictions(document, unit, kinds), *_notes(document, unit))
            limits = [replace(limit, shared_by=shared_by) for limit in told]
            state = segment.attributes.get("state")
            target = segment.child("target")
            too_long = segment.attributes.get("subState") == _TOO_LONG and target is not None and target.raw(document)
            flags = {"final"} if state == "final" else set()
            flags |= {"unfinished" if too_long else "new"} if state == "initial" else set()
            own = segment.attributes.get("id") or str(number)
            name = prefix + unit.attributes.get("id", "") + (f"/{own}" if len(segments) > 1 else "")
            found = _entry(document, segment, source, name, limits, flags)
            found.gap = gaps[segment]
            yield found


def _gaps(document: Document, unit: Element) -> dict[Element, str]:
    """Return what the elements <ignorable> show before each segment: the spaces between sentences."""
    found, gap = {}, ""
    for child in unit.children:
        if child.name == "ignorable" and (part := child.child("target") or child.child("source")):
            gap += xml.shown(part.raw(document), True)
        elif child.name == "segment":
            found[child], gap = gap, ""
    return found


def _restrictions(document: Document, unit: Element, kinds: dict[str, str]) -> Iterator[Limit]:
    """Yield the limits of these attributes, which have these units: '40', '25,100', '*' is none."""
    for name, counted in kinds.items():
        value = unit.attributes.get(name, "")
        first, _, second = value.partition(",")
        low, high = (first, second) if second else ("", first)
        low_number, high_number = (int(n) if n.strip().isdigit() else 0 for n in (low, high))
        if low_number or high_number:
            line = document.line(unit.start)
            yield Limit(high_number or None, counted, f'{name}="{value}"', document.path, line, low_number)


def _notes(document: Document, unit: Element) -> Iterator[Limit]:
    notes = unit.child("notes") or unit
    for note in notes.children:
        if note.name == "note" and note.inner:
            yield from limits_in(xml.shown(note.raw(document), True), document.path, document.line(note.start))


def _entry(
    document: Document, holder: Element, source: Element, name: str, limits: list[Limit], flags: set[str]
) -> Entry:
    if any(element.attributes.get("translate") == "no" for element in holder.ancestors()):
        flags.add("fixed")
    original, source_markup = xml.decode(source.raw(document))
    text, markup = "", source_markup
    target = holder.child("target")
    if target is None:
        place, around = _new_target(document, holder, source)
    elif target.inner is None:  # <target/>
        attributes = target.attributes_text.rstrip("/").rstrip()
        place, around = (target.start, target.end), (f"<{target.tag}{attributes}>", f"</{target.tag}>")
    else:
        text, markup = xml.decode(target.raw(document))
        markup = markup or (source_markup and not text)
        place, around = target.inner, ("", "")
    where = Place(*place, document.line(place[0] if text else source.start))
    visible = _shown(text, markup)
    found = Entry(name, text, where, visible, original, tuple(limits), frozenset(flags), markup, around=around)
    found.source_markup = source_markup
    return found


def _new_target(document: Document, holder: Element, source: Element) -> tuple[tuple[int, int], tuple[str, str]]:
    """Return where a target belongs, after the source (1.2: or the segmented source), indented as the source is."""
    after = holder.child("seg-source") or source
    before = document.text[max(0, source.start - 200) : source.start]  # not all of a long file, for each target
    indent = before[len(before.rstrip()) :]
    tag = source.tag.removesuffix("source") + "target"
    return (after.end, after.end), (f"{indent}<{tag}>", f"</{tag}>")


def _shown(text: str, markup: bool) -> str:
    return xml.shown(CODE.sub("", text), True) if markup else text


def mark(document: Document, entry: Entry, note: str | None) -> list[Edit]:
    """Return the edit of the state: translated, if there was a state, or one that asks for a review."""
    second = _version_2(document)
    if not second and "target" in entry.around[0]:  # the target is not in the file yet, or is an empty tag
        space, bracket, tag = entry.around[0].rpartition("<")
        entry.around = (space + _with_state(bracket + tag, note, second), entry.around[1])
        return []
    start, end = xml.opening_tag(document, "segment" if second else "target", entry.place.start)
    old = document.text[start:end]
    new = _with_state(old, note, second)
    return [Edit(start, end, new)] if new != old else []


def _with_state(tag: str, note: str | None, second: bool) -> str:
    """Return the tag of a target (1.2) or segment (2.x) with its state. The second attribute says why."""
    named = "state=" in re.sub(r"\s*=\s*", "=", tag)
    reason = "subState" if second else "state-qualifier"
    if note is None:
        return xml.with_attribute(xml.with_attribute(tag, reason, None), "state", "translated") if named else tag
    tag = xml.with_attribute(tag, "state", "initial" if second else "needs-review-translation")
    return xml.with_attribute(tag, reason, _TOO_LONG if second else "rejected-length")


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edits of target-language (1.2) or trgLang (2.x), where it is missing, empty or the source language."""
    second = _version_2(document)
    element, attribute = ("xliff", "trgLang") if second else ("file", "target-language")
    edits = []
    for found in re.finditer(rf"<(?:[\w.-]+:)?{element}\s(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", document.text):
        named = re.search(rf"\s{attribute}\s*=\s*[\"']([^\"']*)[\"']", found[0])
        if named is None or re.split("[-_]", named[1])[0] in ("", source):
            edits.append(Edit(*found.span(), xml.with_attribute(found[0], attribute, target)))
    return edits


def _version_2(document: Document) -> bool:
    found = re.search(r"<(?:[\w.-]+:)?xliff\b[^<>]*?\sversion\s*=\s*[\"']2", document.text)
    return found is not None


FORMAT = Format("xliff", entries, xml.encode, declared=xml.declared, mark=mark, label=label, mnemonics="&_")
