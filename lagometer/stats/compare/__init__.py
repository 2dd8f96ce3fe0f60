# SPDX-License-Identifier: Apache-2.0
"""Cells and campaigns beside each other."""
