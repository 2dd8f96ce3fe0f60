# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command, each with a function `command`."""
