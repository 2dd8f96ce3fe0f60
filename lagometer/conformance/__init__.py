# SPDX-License-Identifier: Apache-2.0
"""Whether an adapter does what adapter.h asks, its sidecar declares and its middleware's manual has."""
