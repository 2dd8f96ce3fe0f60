# SPDX-License-Identifier: Apache-2.0
"""An emulated link on one host of a trial: made, measured, and compared with the request before a worker
starts.

It is a separate program (`python -m lagometer.agent.link JSON`) that uses only the standard library.
"""
