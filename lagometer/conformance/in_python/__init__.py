# SPDX-License-Identifier: Apache-2.0
"""One process of a conformance check for adapters in Python: what `lagometer-conformance` is for libraries.

It loads an adapter's module, does what standard input tells it and ends with it. It sees the interface of
adapters in Python (`lagometer.worker_python.adapter`), nothing else of lagometer; `lagometer conformance`
starts it and judges.
"""
