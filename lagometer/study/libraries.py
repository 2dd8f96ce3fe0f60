# SPDX-License-Identifier: Apache-2.0
"""Who owns the libraries of a process: the middleware, an abstraction above it, lagometer, or the system.

Libraries that an adapter's sidecar names belong to the middleware or an abstraction. LTTng, which ROS 2's
tracetools loads whether or not anybody traces, is its own group. Libraries that nobody names are *other*.
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
# The C and C++ runtime and the libraries that the C library itself loads; the interpreter of Python workers.
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

    The middleware comes before our own libraries: a sidecar may name its own library if the middleware is
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
    """Whether a thread belongs to LTTng, by its name."""
    return thread.endswith(_TRACER_THREAD)
