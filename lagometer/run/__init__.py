# SPDX-License-Identifier: Apache-2.0
"""Runs a study: plans of workers, launchers, the conductor of a trial, the campaign."""
