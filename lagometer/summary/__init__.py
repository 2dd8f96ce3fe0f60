# SPDX-License-Identifier: Apache-2.0
"""The figures, tables and findings of a campaign, typed. Every view shows these; no view derives its own."""
