# SPDX-License-Identifier: Apache-2.0
"""One process of a conformance check for Python adapters, as `lagometer-conformance` is for libraries.

It loads an adapter's module, executes the orders from standard input, and ends with it. It uses the interface
of Python adapters (`lagometer.worker_python.adapter`), nothing else of lagometer; `lagometer conformance`
starts it and judges.
"""
