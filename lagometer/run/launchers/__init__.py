# SPDX-License-Identifier: Apache-2.0
"""Where workers run: one small file for each way to start processes and hold their pipes."""
