# SPDX-License-Identifier: Apache-2.0
"""Findings: what happened in a cell, the number that shows it, what to change, and where that is documented.

`evidence` contains what a finding may look at. One file each contains the kinds from one place (`network`,
`queues`, `sending`, `machine`, `failures`). `traps` contains the conditions that an adapter's sidecar
declares. `buffers` names the options that several kinds recommend. `derive` combines them and numbers them;
`footnotes` says which numbers belong to which cell.
"""
