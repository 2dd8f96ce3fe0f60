# SPDX-License-Identifier: Apache-2.0
"""Exports campaigns in the formats of other tools, and imports other tools' figures as campaigns."""
