# SPDX-License-Identifier: Apache-2.0
"""Writes the results of trials into the campaign's folder."""
