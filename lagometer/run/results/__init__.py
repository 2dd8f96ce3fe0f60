# SPDX-License-Identifier: Apache-2.0
"""Writes what came of the trials into the campaign's folder."""
