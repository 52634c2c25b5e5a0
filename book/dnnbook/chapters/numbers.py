"""The number of a chapter, as sidebar, titles and texts give it, and as commands take it."""

import re

from dnnbook import published
from dnnbook.words import shown

OWN = "synthesis"  # the folder of the chapters on all five papers


def numbered(page: str) -> str:
    """What a chapter is called by its number; of another page, nothing.

    >>> numbered("notebooks/nss/02_fault_detection"), numbered("nss/02")
    ('NSS 2', 'NSS 2')
    >>> numbered("notebooks/deepsensor_excitable/10_start")
    'DeepSensor II 10'
    >>> numbered("notebooks/synthesis/01_selectors"), numbered("book/glossary")
    ('All five 1', '')

    The welcome page has no number.
    """
    found = re.fullmatch(r"(?:notebooks/)?(\w+)/(\d+)\w*", page)
    if not found or found[1] not in (*published.PAPERS, OWN):
        return ""
    paper, number = found[1], int(found[2])
    if paper == OWN:
        return f"All five {number}" if number else ""
    return f"{shown(paper)} {number}"
