# SPDX-License-Identifier: Apache-2.0
"""The worker in Python: carries out one plan over a middleware's Python client library (docs/PROTOCOL.md).

It rests on the standard library alone and uses nothing else of ours, as the worker in C++ does: what it
imports would count into the memory and the start of the program that is measured.
"""
