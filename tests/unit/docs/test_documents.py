# SPDX-License-Identifier: Apache-2.0
"""Documents: links and anchors lead somewhere, pages that code names exist, adapters' pages are alike."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
PAGE = re.compile(r"\b(?:docs|adapters)/[\w/-]+\.md\b")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab form them."""
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    fenced = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*$", fenced, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        same = sum(known == slug or known.startswith(f"{slug}-") for known in found)
        found.add(f"{slug}-{same}" if slug in found else slug)
    return found


def broken(page: Path, text: str) -> Iterator[str]:
    """The relative links of a page that lead nowhere."""
    for inline, reference in LINK.findall(CODE.sub("", text)):
        target = inline or reference
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = page if not name else page.parent / name
        if not there.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(there.read_text(encoding="utf-8")):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert not list(broken(page, page.read_text(encoding="utf-8")))


def test_pages_that_code_names_exist() -> None:
    sources = tracked("*.py", "*.cpp", "*.hpp", "*.h", "*.c", "*.rs", "*.ts", "*.yaml", "Makefile", "tools/*")
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        for name in PAGE.findall(path.read_text(encoding="utf-8", errors="replace"))
        if not (ROOT / name).is_file()
    }
    assert not missing


QUESTIONS = [
    "What it is, and which version",
    "Settings: default, matched, tuned",
    "What it can and can't do",
    "What to know when reading its numbers",
    "Sources",
]


@pytest.mark.parametrize("page", tracked("adapters/*/README.md"), ids=lambda page: page.parent.name)
def test_the_page_of_every_adapter_answers_the_same_questions_in_the_same_order(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == QUESTIONS


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `heading`, twice\n\n## Of 5 %?\n", encoding="utf-8")
    page = tmp_path / "page.md"
    text = "[a](there.md#a-heading-twice) [b](there.md#of-5-) [c](gone.md) [d](there.md#gone)"
    text += " [e](https://x.org/y)\n[f]: lost.md"
    assert list(broken(page, text)) == [
        "gone.md: no such file",
        "there.md#gone: no such heading",
        "lost.md: no such file",
    ]
