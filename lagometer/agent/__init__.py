# SPDX-License-Identifier: Apache-2.0
"""What runs on each host of a trial: starts workers and what they need, looks at them, cleans up.

It rests on the standard library alone, so that it starts fast and needs nothing installed beside Python.
"""
