# SPDX-License-Identifier: Apache-2.0
"""Findings: what happened in a cell, the number that shows it, what to change, and where that is known from.

`evidence` is what a finding may look at, one file each holds the kinds of one place (`network`, `queues`,
`sending`, `machine`, `failures`), `traps` the conditions that an adapter's sidecar declares. `derive` puts
them together.
"""
