# SPDX-License-Identifier: Apache-2.0
"""Makes what secures the participants of one trial: an authority, certificates, governance, permissions.

The program openssl makes all of it again for each trial, and it is removed with the trial's folder. The
authority's key is never written on a host where a participant runs. Formats: OMG DDS Security 1.1, sections
9.3.1 (certificates) and 9.4.1 (signed documents). The governance protects the same as that of SROS 2, so the
cost is that of a secured ROS 2 robot.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from lagometer.run.companions.identities import AUTHORITY, FOLDER, Identity, Kind
from lagometer.study.security import DOMAIN_MAX

CURVE = "prime256v1"
DAYS = 30  # longer than any campaign
EARLIER = timedelta(days=1)  # the clocks of other hosts may be behind
_SCHEMA = "http://www.omg.org/spec/DDS-SECURITY/20170901"
_HEAD = f"""<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="{_SCHEMA}/"""


class CertificatesError(Exception):
    """openssl failed. The message says what it should make, and what it printed."""


class Authority:
    """Signs for the participants of one trial. A context manager: its key is removed with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lagometer-authority-")
        self._at = Path(self._folder.name)
        self._made = 0

    def __enter__(self) -> Authority:
        try:
            self._new_key("authority", ("-x509", "-days", str(DAYS)), "authority.pem")
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def files(self, identities: Sequence[Identity]) -> dict[str, str]:
        """Returns what these participants need, as text by name in the trial's folder. Raises
        `CertificatesError`."""
        contents = {f"{FOLDER}/{AUTHORITY}": self._read("authority.pem")}
        for path, kind in {identity.governance: identity.kind for identity in identities}.items():
            contents[path] = self._signed(governance(kind))
        for identity in identities:
            self._made += 1
            self._new_key(identity.name, (), "request.pem")
            serial = str(self._made)
            signed_by = ("-CA", "authority.pem", "-CAkey", "authority.key", "-set_serial", serial)
            self._openssl(
                "x509", "-req", "-in", "request.pem", *signed_by, "-days", str(DAYS), "-out", "c.pem"
            )
            contents[identity.certificate] = self._read("c.pem")
            contents[identity.private_key] = self._read(f"{identity.name}.key")
            contents[identity.permissions] = self._signed(permissions(identity.name, identity.domain))
        return contents

    def _new_key(self, name: str, options: Sequence[str], output: str) -> None:
        key = ("-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{CURVE}", "-nodes", "-keyout", f"{name}.key")
        self._openssl("req", "-new", *key, "-subj", f"/CN={name}", *options, "-out", output)

    def _signed(self, document: str) -> str:
        (self._at / "document.xml").write_text(document, encoding="utf-8")
        signer = ("-signer", "authority.pem", "-inkey", "authority.key")
        self._openssl("smime", "-sign", "-text", "-in", "document.xml", *signer, "-out", "document.p7s")
        return self._read("document.p7s")

    def _read(self, name: str) -> str:
        # Exact bytes: a signature covers the line endings.
        return (self._at / name).read_bytes().decode("utf-8")

    def _openssl(self, *arguments: str) -> None:
        try:
            completed = subprocess.run(
                ["openssl", *arguments], cwd=self._at, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise CertificatesError(f"openssl can't be started: {error.strerror}") from error
        if completed.returncode != 0:
            error_lines = completed.stderr.strip().splitlines()
            last = error_lines[-1] if error_lines else "it said nothing"
            raise CertificatesError(f"openssl {arguments[0]} ended with {completed.returncode}: {last}")


def governance(kind: Kind) -> str:
    """Returns what is protected in every domain, and how. For `encrypt`: like the governance of SROS 2
    (package sros2). For `sign`: SIGN wherever that encrypts."""
    word = kind.upper()
    return f"""{_HEAD}omg_shared_ca_governance.xsd">
  <domain_access_rules>
    <domain_rule>
      <domains><id_range><min>0</min><max>{DOMAIN_MAX}</max></id_range></domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>{word}</discovery_protection_kind>
      <liveliness_protection_kind>{word}</liveliness_protection_kind>
      <rtps_protection_kind>SIGN</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>{word}</metadata_protection_kind>
          <data_protection_kind>{word}</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"""


def permissions(name: str, domain: int) -> str:
    """Returns the permissions of a participant: publish and subscribe on every topic of this domain."""
    now = datetime.now(timezone.utc)
    begin, end = (
        moment.strftime("%Y-%m-%dT%H:%M:%S") for moment in (now - EARLIER, now + timedelta(days=DAYS))
    )
    return f"""{_HEAD}omg_shared_ca_permissions.xsd">
  <permissions>
    <grant name="{name}">
      <subject_name>CN={name}</subject_name>
      <validity><not_before>{begin}</not_before><not_after>{end}</not_after></validity>
      <allow_rule>
        <domains><id>{domain}</id></domains>
        <publish><topics><topic>*</topic></topics></publish>
        <subscribe><topics><topic>*</topic></topics></subscribe>
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
"""
