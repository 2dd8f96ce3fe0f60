# SPDX-License-Identifier: Apache-2.0
"""What runs beside the workers: daemons of the middleware, interference."""
