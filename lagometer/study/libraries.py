# SPDX-License-Identifier: Apache-2.0
"""Whose the libraries of a process are: the middleware's, an abstraction's above it, our own, the system's.

What an adapter's sidecar names is the middleware's or an abstraction's. LTTng, which ROS 2's tracetools
brings along whether or not anybody traces, is a group of its own. What nobody names is *other*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from lagometer.study.sidecar import Sidecar

MIDDLEWARE, ABSTRACTION, OWN, RUNTIME, OTHER = "middleware", "abstraction", "lagometer", "runtime", "other"
TRACER = "tracer"
GROUPS = (MIDDLEWARE, ABSTRACTION, TRACER, OWN, RUNTIME, OTHER)
_TRACER = ("liblttng-ust*.so*", "liburcu*.so*", "libtracetools_provider.so")
_TRACER_THREAD = "-ust"  # LTTng calls its threads PROGRAM-ust
_OWN = ("lagometer-*", "liblagometer_*.so")
# The C and C++ runtime and what the C library itself loads; the interpreter of workers in Python.
_RUNTIME = (
    *(
        "ld-linux*.so*",
        "ld-*.so",
        "ld-musl-*.so*",
        "ld64.so*",
        "libc.so*",
        "libc-*.so",
        "libm.so*",
        "libm-*.so",
    ),
    *("libpthread.so*", "libpthread-*.so", "libdl.so*", "libdl-*.so", "librt.so*", "librt-*.so"),
    *("libresolv.so*", "libresolv-*.so", "libnss_*.so*", "libmvec.so*", "libutil.so*", "libanl.so*"),
    *("libstdc++.so*", "libgcc_s.so*", "libatomic.so*", "libc++.so*", "libc++abi.so*", "libunwind.so*"),
    *("python3*", "libpython3*.so*"),
)


def grouping(sidecars: Iterable[Sidecar]) -> Callable[[str], str]:
    """Returns a function from a library's path to its group, for processes that use these adapters.

    The middleware goes before what is ours: a sidecar may name its own library, where the middleware is
    linked into it.
    """
    sidecar_list = list(sidecars)
    patterns = (
        (TRACER, _TRACER),
        (MIDDLEWARE, [pattern for sidecar in sidecar_list for pattern in sidecar.libraries.middleware]),
        (ABSTRACTION, [pattern for sidecar in sidecar_list for pattern in sidecar.libraries.abstraction]),
        (OWN, _OWN),
        (RUNTIME, _RUNTIME),
    )

    def group_of(path: str) -> str:
        name = PurePosixPath(path).name
        for group, wanted in patterns:
            if any(fnmatchcase(name, pattern) for pattern in wanted):
                return group
        return OTHER

    return group_of


def is_of_tracer(thread: str) -> bool:
    """Whether a thread is LTTng's, by its name."""
    return thread.endswith(_TRACER_THREAD)
