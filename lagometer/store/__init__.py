# SPDX-License-Identifier: Apache-2.0
"""What was measured: the decoded records of workers, the files of a campaign, the machine it ran on."""
