# SPDX-License-Identifier: Apache-2.0
"""How a study is carried out: plans of workers, launchers, the conductor of a trial, the campaign."""
