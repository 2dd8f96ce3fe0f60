# SPDX-License-Identifier: Apache-2.0
"""Programs that are not ours, carried out under the probe (docs/methodology/probe.md)."""
