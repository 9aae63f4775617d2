"""Quantities with units as fields of pydantic models: text in files, integers in memory."""

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tilec.spec.units import BANDWIDTH, BYTES, ENERGY, RATE, TIME, Unit


def _annotations(unit: Unit) -> tuple[BeforeValidator, PlainSerializer, WithJsonSchema]:
    suffixes = "|".join(sorted(unit.factors, key=lambda name: unit.factors[name]))
    schema = {
        "type": "string",
        "pattern": rf"^[0-9]+(\.[0-9]+)?\s*({suffixes})$",
        "examples": [unit.example],
    }
    return BeforeValidator(unit.parse), PlainSerializer(unit.format), WithJsonSchema(schema)


Bytes = Annotated[int, *_annotations(BYTES)]
BytesPerSecond = Annotated[int, *_annotations(BANDWIDTH)]
FlopsPerSecond = Annotated[int, *_annotations(RATE)]
Picoseconds = Annotated[int, *_annotations(TIME)]
Femtojoules = Annotated[int, *_annotations(ENERGY)]
