# SPDX-License-Identifier: Apache-2.0
"""Figures of one cell over its trials."""
