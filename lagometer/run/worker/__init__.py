# SPDX-License-Identifier: Apache-2.0
"""Workers: their plans, the conversation with them, and the results of a trial."""
