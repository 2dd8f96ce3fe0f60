# SPDX-License-Identifier: Apache-2.0
"""Rules of this code that no linter checks; `make lint` runs it.

- A file has at most 500 lines, a function at most 70 (clippy checks Rust functions). A longer one gives its
  reason in place: a comment `long file: <reason>` among the first 30 lines, `long function: <reason>` above
  the function or in its first lines.
- Adapters include, of our code, only `lagometer/*.h` and the folders that adapters share (`adapters/common/`,
  and other folders without a sidecar); the engine includes nothing from adapters; engine/abi_host/ includes
  only lagometer/*.h and its own.
- Every function pointer of a public header has its whole contract (threads, state, in-callback, blocks,
  allocates, statuses, required or optional); adapter.h has at most 500 lines, the template
  adapter 150, README 200.
- Python and TypeScript format durations in one place each, lagometer/units.py and web/src/format.ts.
- Lock files name no host. shellcheck finds nothing in shell scripts. Every source file names its licence.
- No text uses words that stop a reader (tools/words.py names better ones); Markdown prose is wrapped.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import words

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
BRACED = {".c", ".h", ".cpp", ".hpp", ".ts", ".mts"}
SOURCES = BRACED | {".py", ".rs"}
LICENSED = SOURCES | {".sh", ".cmake"}
LIMITS = {
    # The concept first, then each function with its whole contract (CONTRACT_WORDS): 400 lines were too few.
    "engine/include/lagometer/adapter.h": 500,
    "README.md": 200,
}


def tracked() -> list[Path]:
    """The files that git tracks or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split(
        "\0"
    )
    return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})


def name_of(path: Path) -> str:
    """The path as printed."""
    return path.relative_to(ROOT).as_posix()


def blank(match: re.Match[str]) -> str:
    """Spaces for a matched comment or string; keeps line ends."""
    return re.sub(r"[^\n]", " ", match[0])


TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""",
    re.DOTALL,
)
CONTROL = re.compile(r"^\s*(?:\}?\s*else\s+)?(?:if|for|while|switch|catch|do|else|namespace|extern)\b")
HEAD = re.compile(r"(?:\)[^(){}=;]*(?:->[^{};]*)?|\)\s*:\s*[^;]*|=>\s*)$", re.DOTALL)


def braced_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each outermost function of a C, C++ or TypeScript file."""
    code = TOKENS.sub(blank, text)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.MULTILINE)
    opened: list[tuple[bool | None, int]] = []  # is it a function? None: an initializer, part of a statement
    begin = 0
    for match in re.finditer(r"[{};]", code):
        if match[0] == "{" and re.match(r"[\w>]", code[match.start() - 1 : match.start()]):
            opened.append((None, 0))
            continue
        if match[0] == "{":
            head = code[begin : match.start()]
            inside = any(function for function, _ in opened)
            function: bool | None = not inside and bool(HEAD.search(head)) and not CONTROL.match(head)
            first = code.count("\n", 0, begin + len(head) - len(head.lstrip())) + 1
            opened.append((function, first))
        elif match[0] == "}" and opened:
            function, first = opened.pop()
            if function is None:
                continue
            if function:
                yield first, code.count("\n", 0, match.start()) + 1
        begin = match.end()


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function of a Python file, without decorators."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.end_lineno or node.lineno


def check_sizes(path: Path, text: str) -> Iterator[str]:
    """Files and functions that are too long without a reason."""
    lines = text.splitlines()
    reason = re.compile(r"long file: \S+ \S+ \S+")
    if len(lines) > FILE_LINES_MAX and not any(reason.search(line) for line in lines[:30]):
        wrong = f"{len(lines)} lines, at most {FILE_LINES_MAX}"
        yield f"{name_of(path)}: {wrong}; split it, or say `long file: <reason>`"
    reason = re.compile(r"long function: \S+ \S+ \S+")
    if path.suffix == ".rs":
        return  # clippy.toml bounds its functions
    functions = python_functions(text) if path.suffix == ".py" else braced_functions(text)
    for first, last in functions:
        near = lines[max(0, first - 4) : first + 3]
        if last - first + 1 > FUNCTION_LINES_MAX and not any(reason.search(line) for line in near):
            wrong = f"a function of {last - first + 1} lines, at most {FUNCTION_LINES_MAX}"
            yield f"{name_of(path)}:{first}: {wrong}; split it, or say `long function: <reason>`"


def check_includes(path: Path, text: str) -> Iterator[str]:
    """Includes that cross the boundaries between engine and adapters."""
    parts = path.relative_to(ROOT).parts
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not match:
            continue
        where, target = f"{name_of(path)}:{number}", match[2]
        if parts[0] == "adapters" and crosses_from_adapter(path, match[1] == '"', target):
            yield f"{where}: includes {target}; an adapter sees lagometer/*.h, shared folders and its own"
        if parts[0] == "engine" and ("adapters/" in target or target == "binding.hpp"):
            yield f"{where}: includes {target}; the engine knows no adapter"
        own = (ROOT / "engine" / "abi_host" / target).exists() or target.startswith("lagometer/")
        if parts[:2] == ("engine", "abi_host") and match[1] == '"' and not own:
            yield f"{where}: includes {target}; the host's half of the ABI sees lagometer/*.h and its own"


def crosses_from_adapter(path: Path, quoted: bool, target: str) -> bool:
    """Whether this include of an adapter's file reaches into the engine or another adapter."""
    if target.startswith("lagometer/"):
        own = target.removeprefix("lagometer/")
        public = (ROOT / "engine" / "include" / target, ROOT / "adapters" / "common" / own)
        return not any(path.exists() for path in public)
    if not quoted:
        return False
    own = ROOT / "adapters" / path.relative_to(ROOT).parts[1]
    allowed = [own, *shared_folders()]
    for folder in (path.parent, *allowed):
        file = (folder / target).resolve()
        if file.exists():
            return not any(file.is_relative_to(root) for root in allowed)
    return True


def shared_folders() -> list[Path]:
    """The folders next to the adapters without a sidecar, which all adapters or a family of them share."""
    return [
        path
        for path in (ROOT / "adapters").iterdir()
        if path.is_dir() and not (path / "adapter.json").exists()
    ]


CONTRACT_WORDS = ("[thread: ", "state: ", "in-callback: ", "blocks: ", "allocates: ")


def check_contracts(path: Path, text: str) -> Iterator[str]:
    """Function pointers of a public header without a complete contract.

    A comment's contract applies to the function pointers after it, up to the next blank line or the next
    comment above one; `[as other]` after one refers to the contract of `other`.
    """
    comments = re.finditer(r"(^[ ]*)?/\*(.*?)\*/|^\s*$", text, re.M | re.S)
    marks = [(mark.end(), mark[2] or "") for mark in comments if mark[1] is not None or not mark[2]]
    known: set[str] = set()
    pointer = re.compile(r"^[ ]*([\w* ]+?)\(\*(\w+)\)\([^;{}]*?;[ ]*(?:/\*(.*?)\*/)?", re.M | re.S)
    for found in pointer.finditer(text):
        above = [words for end, words in marks if end <= found.start(2)]
        words = f"{above[-1] if above else ''} {found[3] or ''}"
        referred = re.findall(r"\[as (\w+)\]", words)
        if referred and set(referred) <= known:
            known.add(found[2])
            continue
        number = text.count("\n", 0, found.start(2)) + 1
        missing = missing_words(above[-1] if above else "", found[1].strip())
        if missing:
            yield f"{name_of(path)}:{number}: the contract of {found[2]} lacks {', '.join(missing)}"
        known.add(found[2])


def missing_words(comment: str, returns: str) -> list[str]:
    """What the contract in a comment lacks: who calls it when, what it returns, whether it may be null. A
    type of functions is no pointer yet, which might be null."""
    text = re.sub(r"[\s*]+", " ", comment)
    missing = [word.strip("[ ") for word in CONTRACT_WORDS if word not in text]
    if returns == "lagometer_status" and "Status: " not in text:
        missing.append("Status:")
    if not returns.startswith("typedef ") and not re.search(r"\b(Required|Optional)\b", text):
        missing.append("Required or Optional")
    return missing


def check_limits() -> Iterator[str]:
    """Files with their own limits."""
    limits = dict(LIMITS)
    limits |= {name_of(path): 150 for path in (ROOT / "adapters" / "null").glob("*.c*")}
    limits |= {
        name_of(path): 120
        for path in (ROOT / "engine/include/lagometer").glob("*.h")
        if path.name != "adapter.h"
    }
    for name, limit in limits.items():
        path = ROOT / name
        if path.exists() and (count := len(path.read_text().splitlines())) > limit:
            yield f"{name}: {count} lines, at most {limit}"


# What may not import lagometer.units, what quotes the file it reads, and the two places themselves.
DURATIONS_ELSEWHERE = (
    *("lagometer/agent/", "lagometer/worker_python/", "lagometer/exchange/imports/"),
    *("lagometer/units.py", "web/src/format.ts"),
)
DURATION_BY_HAND = {
    ".py": re.compile(r"\{[^{}]*_(?:ns|us|NS|US)\b[^{}]*\} ?(?:ns|µs|us|ms|s)\b"),
    ".ts": re.compile(r"\$\{[^`]*\} ?(?:ns|µs|us|ms|s)\b"),
}


def check_durations(path: Path, text: str) -> Iterator[str]:
    """Times in a text that the module for it did not format: each would have digits and a unit of its own."""
    name = name_of(path)
    wanted = name.startswith(("lagometer/", "web/src/")) and not name.startswith(DURATIONS_ELSEWHERE)
    pattern = DURATION_BY_HAND.get(path.suffix) if wanted else None
    for number, line in enumerate(text.splitlines() if pattern else (), 1):
        if pattern is not None and pattern.search(line):
            where = "lagometer/units.py" if path.suffix == ".py" else "web/src/format.ts"
            yield f"{name}:{number}: a duration is formatted here; use a function of {where}"


def check_lock(path: Path, text: str) -> Iterator[str]:
    """Hosts and indices in a lock file."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"(?<!sha512-)\b[a-z+]+://|--(find-links|index-url|extra-index-url|trusted-host)", line):
            if re.fullmatch(r'\s*("url": |"funding": )?"[^"]*",?', line):
                continue  # a donation address of a package's authors, which npm does not read as a source
            yield f"{name_of(path)}:{number}: a lock file names a host: {line.strip()[:60]}"


def is_shell(path: Path, text: str) -> bool:
    """A shell script, by its first line."""
    return path.suffix == ".sh" or re.match(r"#!.*\b(ba|da)?sh\b", text) is not None


def check_shell(path: Path) -> Iterator[str]:
    """The findings of shellcheck in a shell script; without shellcheck, whether the script parses.

    With LAGOMETER_REQUIRE, as in CI, shellcheck must be installed.
    """
    if shutil.which("shellcheck") is not None:
        command = ["shellcheck", "--severity=warning", "--format=gcc", path.name]
    elif os.environ.get("LAGOMETER_REQUIRE"):
        yield f"{name_of(path)}: was not checked: the package shellcheck is not installed"
        return
    else:
        command = ["bash", "-n", path.name]
    result = subprocess.run(command, cwd=path.parent, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        yield from (f"{name_of(path.parent)}/{line}" for line in (result.stdout + result.stderr).splitlines())


def check_licence(path: Path, text: str) -> Iterator[str]:
    """Source files that name no licence."""
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:5]):
        yield f"{name_of(path)}:1: no `SPDX-License-Identifier: Apache-2.0` in the first lines"


def check(path: Path) -> Iterator[str]:
    """All findings in one file."""
    is_lock = name_of(path).startswith("requirements/") or path.name == "package-lock.json"
    script = not path.suffix and path.relative_to(ROOT).parts[0] in ("tools", ".ci")
    if not (path.suffix in LICENSED or is_lock or script or path.name in ("CMakeLists.txt", "Makefile")):
        return
    text = path.read_text()
    if is_lock:
        yield from check_lock(path, text)
        return
    if path.suffix in LICENSED or script:
        yield from check_licence(path, text)
    if path.suffix in SOURCES:
        yield from check_sizes(path, text)
        yield from check_durations(path, text)
    if path.suffix in BRACED and path.suffix not in (".ts", ".mts"):
        yield from check_includes(path, text)
    if path.parent == ROOT / "engine" / "include" / "lagometer":
        yield from check_contracts(path, text)
    if is_shell(path, text):
        yield from check_shell(path)


def check_words(path: Path) -> Iterator[str]:
    """Words and lines that are hard to read, in any text of ours."""
    for line, wrong in words.findings(name_of(path), path.read_bytes()):
        yield f"{name_of(path)}:{line}: {wrong}"


def main() -> int:
    """Prints every finding; 0 if there is none."""
    findings = [finding for path in tracked() for finding in (*check(path), *check_words(path))]
    findings += check_limits()
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
