# SPDX-License-Identifier: Apache-2.0
"""Whether an adapter does what adapter.h, its sidecar and its middleware's manual say."""
