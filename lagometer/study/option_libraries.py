# SPDX-License-Identifier: Apache-2.0
"""Libraries that values of an adapter's options need, such as ROS 2's middleware layers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lagometer.study.adapter import Adapter
from lagometer.study.stacking import Options


def missing_libraries(adapter: Adapter, options: Options) -> Iterator[str]:
    """Why the adapter's options can't have these values here."""
    for key, value in options.get(adapter.name, {}).items():
        option = adapter.sidecar.options.get(key)
        if option is None or option.library is None or value == option.default:
            continue
        variable = option.library.prefixes
        prefixes = [prefix for prefix in os.environ.get(variable, "").split(":") if prefix]
        file = option.library.file.replace("{value}", str(value))
        if prefixes and not any((Path(prefix) / file).is_file() for prefix in prefixes):
            yield f"needs {value}: {file} is in no prefix of {variable}"
