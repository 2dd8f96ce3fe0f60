# SPDX-License-Identifier: Apache-2.0
"""The hosts of a trial from the conductor's side: how it reaches an agent, and the link to the agent."""
