# SPDX-License-Identifier: Apache-2.0
"""Results of other tools as campaign folders: one module per format, `formats` lists them."""
