# SPDX-License-Identifier: Apache-2.0
"""The worker in Python: runs one plan over a middleware's Python client library (docs/PROTOCOL.md).

Like the worker in C++, it uses only the standard library and nothing else of ours: its imports would add to
the memory and startup time of the measured program.
"""
