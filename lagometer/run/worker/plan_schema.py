# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON Schema of a plan:
`python -m lagometer.run.worker.plan_schema > schema/plan.schema.json`.
"""

from __future__ import annotations

import json
import sys

from lagometer.run.worker.plan import Plan


def schema_text() -> str:
    """Returns the content of `schema/plan.schema.json`."""
    schema = Plan.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "The plan of one worker"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
