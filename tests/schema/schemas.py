# SPDX-License-Identifier: Apache-2.0
"""Finds what is wrong with a JSON document by the schema that describes it, with python3-jsonschema."""

import json
import os

try:
    import jsonschema
except ImportError as error:
    raise SystemExit("the Python module jsonschema is missing: apt-get install python3-jsonschema") from error

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMAS = {"report": "curtail/load/report/result.schema.json",
           "comparison": "tools/curtail/compare/comparison.schema.json",
           "provision": "tools/curtail/provision/provision.schema.json",
           "profile": "curtail/adapt/profile.schema.json"}

# JSON Schema takes 5.0 as an integer. Readers of our documents may not, so the writers print 5.
TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool))
Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=TYPES)


def expect_known_keywords(schema, where="#"):
    """JSON Schema ignores a keyword that it does not know, so a misspelt one would check nothing."""
    for keyword, value in schema.items():
        assert keyword in Validator.VALIDATORS or keyword in ("$schema", "$defs", "title", "description"), \
            f"{where}: unknown keyword {keyword}"
        if keyword in ("properties", "$defs"):
            for name, inner in value.items():
                expect_known_keywords(inner, f"{where}/{keyword}/{name}")
        elif isinstance(value, dict) and keyword not in ("const", "enum"):
            expect_known_keywords(value, f"{where}/{keyword}")


def load(kind, part=None):
    """A validator of the whole document, or of what `part` names below $defs."""
    with open(os.path.join(ROOT, SCHEMAS[kind]), encoding="utf-8") as file:
        schema = json.load(file)
    Validator.check_schema(schema)
    expect_known_keywords(schema)
    if part:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{part}"}
    return Validator(schema)


def faults(validator, document):
    """Pairs of the path to what is wrong, as in "runs/1/ok", and the keyword of the schema that it breaks."""
    return sorted(("/".join(map(str, error.absolute_path)), error.validator) for error in validator.iter_errors(document))


def expect_valid(kind, path):
    with open(path, encoding="utf-8") as file:
        found = faults(load(kind), json.load(file))
    assert not found, f"{path} is not as {SCHEMAS[kind]} says: {found[:5]}"
