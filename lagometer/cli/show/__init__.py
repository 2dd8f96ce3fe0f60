# SPDX-License-Identifier: Apache-2.0
"""`lagometer show`: one file for each part of its output."""
