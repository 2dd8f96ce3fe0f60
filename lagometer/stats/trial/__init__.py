# SPDX-License-Identifier: Apache-2.0
"""One trial: from records to samples of edges, and their figures."""
