# SPDX-License-Identifier: Apache-2.0
"""Campaigns in the formats of other tools, and figures of other tools as campaigns."""
