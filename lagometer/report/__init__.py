# SPDX-License-Identifier: Apache-2.0
"""The report: one self-contained HTML file about a campaign. Uses `stats` and `store`."""
