# SPDX-License-Identifier: Apache-2.0
"""The agent runs on each host of a trial: it starts workers and their companions, observes them and cleans
up.

It uses only the standard library, so it starts fast and needs nothing but Python.
"""
