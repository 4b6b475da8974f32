"""The part of SARIF 2.1.0 that dlprof writes, as a JSON schema that allows nothing else.

Written after the standard's own schema (sarif-schema-2.1.0.json, errata 01): the same names, types,
required keys and enumerations of every object that is used. Keys that dlprof does not write are left
out, so whoever adds one adds it here, from the standard. ``uri`` is stricter: a relative reference.
"""

from __future__ import annotations


def _object(required, **properties):
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _list(items):
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object(["text"], text=TEXT, markdown=TEXT)
RULE = _object(
    # GitHub code scanning asks for the descriptions and the help, the standard for the id alone.
    ["id", "shortDescription", "fullDescription", "help"],
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    helpUri={"type": "string", "pattern": "^https?://[^ ]+$"},
)
PHYSICAL = _object(
    ["artifactLocation"],
    artifactLocation=_object(["uri"], uri={"type": "string", "pattern": r"^[A-Za-z0-9._~%/-]+$"}),
    region=_object([], startLine={"type": "integer", "minimum": 1}),
)
LOCATION = _object(
    [],
    physicalLocation=PHYSICAL,
    logicalLocations=_list(_object([], name=TEXT, fullyQualifiedName=TEXT)),
)
RESULT = _object(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=MESSAGE,
    locations=_list(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
)
DRIVER = _object(["name"], name=TEXT, version=TEXT, rules=_list(RULE))
RUN = _object(
    ["tool"],
    tool=_object(["driver"], driver=DRIVER),
    invocations=_list(_object(["executionSuccessful"], executionSuccessful={"type": "boolean"})),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_list(RESULT),
)
SARIF = _object(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs=_list(RUN),
)
