# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for chrony and linuxptp: programs that answer what a file says, and processes by their names.

No test machine has a network card with a clock.
"""

from __future__ import annotations

import shutil
from pathlib import Path

OWN, OTHER, MASTER = "90e2ba.fffe.20c7f8", "90e2ba.fffe.30d8a9", "001d24.fffe.ab0f12"


def time_status(own: str = OWN, master: str = MASTER, offset_ns: int = -6, present: bool = True) -> str:
    """What `pmc` prints of TIME_STATUS_NP (linuxptp 3.1)."""
    return f"""sending: GET TIME_STATUS_NP
\t{own}-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              {offset_ns}
\t\tingress_time               1706000000000000000
\t\tcumulativeScaledRateOffset +0.000000000
\t\tscaledLastGmPhaseChange    0
\t\tgmTimeBaseIndicator        0
\t\tlastGmPhaseChange          0x0000'0000000000000000.0000
\t\tgmPresent                  {str(present).lower()}
\t\tgmIdentity                 {master}
"""


def port_properties(own: str = OWN, stamped_by: str = "HARDWARE", ports: int = 1) -> str:
    """What `pmc` prints of PORT_PROPERTIES_NP."""
    return "sending: GET PORT_PROPERTIES_NP\n" + "".join(
        f"""\t{own}-{port} seq 0 RESPONSE MANAGEMENT PORT_PROPERTIES_NP
\t\tportIdentity            {own}-{port}
\t\tportState               SLAVE
\t\ttimestamping            {stamped_by}
\t\tinterface               eth{port}
"""
        for port in range(1, ports + 1)
    )


def tracking(offset_s: float = 0.00002, delay_s: float = 0.0004, dispersion_s: float = 0.0001) -> str:
    """What `chronyc -n -c tracking` prints."""
    fields = (
        *("C0A80101", "192.168.1.1", 3, 1706000000.5, offset_s, 0.00001, 0.00003),
        *(-12.5, 0.01, 0.05, delay_s, dispersion_s, 64.2, "Normal"),
    )
    return ",".join(map(str, fields)) + "\n"


def write_programs(folder: Path, status: str = "", properties: str = "", chrony: str = "") -> Path:
    """Writes programs that answer with these texts, and `ptp4l`, `phc2sys` and `chronyd`, which do nothing
    for as many seconds as they are told. Returns their folder."""
    folder.mkdir()
    for name, text in (("status", status), ("properties", properties), ("tracking", chrony)):
        (folder / name).write_text(text)
    pmc = f'case "$*" in *TIME_STATUS_NP) cat {folder}/status;; *) cat {folder}/properties;; esac'
    for name, script in (("pmc", pmc), ("chronyc", f"cat {folder}/tracking")):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    for name in ("ptp4l", "phc2sys", "chronyd"):
        shutil.copy(shutil.which("sleep") or "sleep", folder / name)
    return folder
