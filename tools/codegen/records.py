"""Loads the operator records of `aten/ops/*.yaml` into typed objects, strictly.

`python -m tools.codegen.records aten/ops` checks a folder: every mistake is printed as
`file:line: message` and the exit status is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .errors import CodegenError, CodegenErrors, Location
from .foreach import foreach_records
from .functional import functional_records
from .record_checks import (
    check_overload,
    check_record,
    check_schema_name,
    lint_records,
)
from .record_dtypes import Dtypes
from .record_formulas import Formula, KindExpr
from .record_types import (
    FAMILIES,
    Axes,
    Backward,
    Body,
    Composite,
    Doc,
    Forms,
    Kernel,
    Map,
    MapOfOthers,
    Overload,
    Pointwise,
    Python,
    Record,
    Reduction,
    Shared,
    View,
    body_type,
)
from .schema import Schema, inplace_schema, out_schema, parse_schema
from .view_copies import view_copy_records
from .yaml_fields import (
    Node,
    Text,
    build,
    entries_of,
    one_of,
    read_yaml,
    reject_unknown,
    text,
)

__all__ = [
    "Axes",
    "Backward",
    "Body",
    "Composite",
    "Doc",
    "Dtypes",
    "Forms",
    "Formula",
    "Kernel",
    "KindExpr",
    "Map",
    "MapOfOthers",
    "Overload",
    "Pointwise",
    "Python",
    "Record",
    "Reduction",
    "View",
    "lint_records",
    "load_records",
    "load_text",
]


def load_records(folder: str | Path) -> list[Record]:
    """All records of a folder's *.yaml, sorted by name; raises CodegenErrors."""
    paths = sorted(Path(folder).glob("*.yaml"))
    if not paths:
        raise CodegenError("no *.yaml here", Location(str(folder)))
    texts = [(path.read_text(encoding="utf-8"), str(path)) for path in paths]
    return _load(texts)


def load_text(content: str, file: str = "<string>") -> list[Record]:
    """The records of one file's content."""
    return _load([(content, file)])


def _load(texts: Iterable[tuple[str, str]]) -> list[Record]:
    errors: list[CodegenError] = []
    records: list[Record] = []
    for content, file in texts:
        try:
            root = read_yaml(content, file)
            items = root.items("a list of records") if root else []
        except CodegenError as error:
            errors.append(error)
            continue
        for item in items:
            try:
                record = _record(item)
                records += [
                    record,
                    *foreach_records(record),
                    *view_copy_records(record),
                ]
            except CodegenError as error:
                errors.append(error.at(item.location))
    records += functional_records(records)
    errors += _duplicates(records)
    if errors:
        raise CodegenErrors(errors)
    return sorted(records, key=lambda record: record.name)


def _record(node: Node) -> Record:
    values = node.mapping("a record (a mapping)")
    name = text(values["name"]) if "name" in values else "record"
    overload_nodes = values.get("overloads")
    items = overload_nodes.items("a list of overloads") if overload_nodes else []
    if not items:
        place = overload_nodes.location if overload_nodes else node.location
        raise CodegenError(f"{name}: missing field 'overloads'", place)
    bodies = {
        _body_type(entry.mapping("an overload (a mapping)"), values, entry.location)
        for entry in items
    }
    known = {"overloads", *entries_of(Record), *entries_of(Shared)}
    for body in bodies:
        known |= set(entries_of(body))
    reject_unknown(values, known, name)
    overloads = tuple(_overload(item, values, name) for item in items)
    record = build(
        Record, values, node.location, name, overloads=overloads, location=node.location
    )
    check_record(record)
    return record


def _body_type(
    own: dict[str, Node], shared: dict[str, Node], location: Location
) -> type:
    return body_type(_family(own, shared, location), {*own, *shared})


def _family(own: dict[str, Node], shared: dict[str, Node], location: Location) -> str:
    node = own.get("family", shared.get("family"))
    if node is None:
        raise CodegenError("missing field 'family'", location)
    return one_of(*FAMILIES)(node)


def _overload(node: Node, shared: dict[str, Node], name: str) -> Overload:
    """The overload's own keys, and the record's for those it does not give."""
    own = node.mapping()
    cls = _body_type(own, shared, node.location)
    usable = {*entries_of(Shared), *entries_of(cls)}
    reject_unknown(own, usable | {"schema"}, f"{name}: overload")
    if "schema" not in own:
        raise CodegenError(f"{name}: missing field 'schema'", node.location)
    values = {key: value for key, value in shared.items() if key in usable} | own
    schema = _schema(own["schema"])
    check_schema_name(name, schema, own["schema"].location)
    what = f"{name} ({schema.name})"
    forms = build(Shared, values, node.location, what).forms
    overload = build(
        Overload,
        values,
        node.location,
        what,
        schema=schema,
        derived=_derive(schema, forms, values.get("forms", node)),
        body=build(cls, values, node.location, what),
        location=own["schema"].location,
    )
    check_overload(overload)
    return overload


def _schema(node: Node) -> Schema:
    try:
        return parse_schema(text(node))
    except CodegenError as error:
        raise error.at(node.location) from None


def _derive(schema: Schema, forms: Forms, node: Node) -> dict[str, Schema]:
    makers: dict[str, Callable[[str | None], Schema]] = {
        "inplace": lambda overload: inplace_schema(schema, overload=overload),
        "out": lambda overload: out_schema(schema, overload, forms.out_args or None),
    }
    derived: dict[str, Schema] = {}
    for form, full_name in forms.names.items():
        try:
            derived[form] = makers[form](_overload_name(schema, form, full_name))
        except CodegenError as error:
            raise error.at(full_name.location if full_name else node.location) from None
    return derived


def _overload_name(schema: Schema, form: str, full_name: Text | None) -> str | None:
    if full_name is None:
        return None
    base, _, overload = full_name.partition(".")
    expected = schema.base + ("_" if form == "inplace" else "")
    if base != expected:
        raise CodegenError(f"{form} form must be named {expected}.*, got {full_name!r}")
    return overload


def _duplicates(records: Iterable[Record]) -> Iterator[CodegenError]:
    """Base names, alias names and operator names that occur twice."""
    bases: dict[str, Location] = {}
    operators: dict[str, Location] = {}

    def claim(
        table: dict[str, Location], name: str, place: Location
    ) -> Iterator[CodegenError]:
        if name in table:
            yield CodegenError(f"{name!r} is already defined at {table[name]}", place)
        table.setdefault(name, place)

    for record in records:
        yield from claim(bases, record.name, record.location)
        for alias in record.alias_names:
            yield from claim(bases, alias, alias.location)
        for overload in record.overloads:
            for schema in overload.schemas.values():
                yield from claim(operators, schema.name, overload.location)


def main(arguments: list[str]) -> int:
    """Checks and lints the record folders given; the exit status is 1 on any error."""
    status = 0
    for folder in arguments:
        try:
            records = load_records(folder)
            problems = list(lint_records(records))
            overloads = sum(len(record.overloads) for record in records)
            print(f"{folder}: {len(records)} records, {overloads} overloads")
        except CodegenError as error:
            problems = [error]
        for problem in problems:
            print(problem, file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
