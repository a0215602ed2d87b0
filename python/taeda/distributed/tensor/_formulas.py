"""What a record's formulas say of sums: where partial values may go through.

An operator is linear in some of its tensors if each formula is a sum of terms that have
exactly one of them as a factor. Formulas with conditions are not looked into.
"""

from __future__ import annotations

import ast
from itertools import combinations

# How partial results are joined, by a reduction's formula of joining two.
_JOINED = {
    "a + b": "sum",
    "a * b": "product",
    "maximum(a, b)": "max",
    "minimum(a, b)": "min",
    "1 if a != 0 or b != 0 else 0": "sum",
    "1 if a != 0 and b != 0 else 0": "product",
}
# What may stand at the end of a reduction whose parts are joined so.
_ENDS = {"acc": "", "real(acc)": "", "acc != 0": "", "acc / count": "avg"}
_KEEPING = ("conj", "real", "imag", "cast")  # functions that are linear over the reals


def linear_sets(record, tensors: list[str]) -> list[frozenset[str]]:
    """Sets of arguments that may be partial sums together, the others whole.

    Args:
        record: of an operator whose formula gives each element.
        tensors: names of its tensor arguments.
    """
    roles = ("forward", "element")
    texts = {
        e.text
        for e in record.expressions
        if e.role in roles and e.kind not in ("bool", "int")
    } or {e.text for e in record.expressions if e.role in roles}
    if not texts or len(tensors) > 4:
        return []
    try:
        trees = [ast.parse(text, mode="eval").body for text in texts]
    except SyntaxError:
        return []
    found = []
    for count in range(1, len(tensors) + 1):
        for names in combinations(tensors, count):
            if all(_degree(tree, frozenset(names)) == 1 for tree in trees):
                found.append(frozenset(names))
    return found


def reads_no_values(record, tensors: list[str]) -> bool:
    """Whether new elements do not depend on the tensors' (`ones_like`)."""
    if record.family != "map" or any(hasattr(a, "written") for a in record.arguments):
        return False
    texts = {e.text for e in record.expressions if e.role == "element"}
    trees = [ast.parse(text, mode="eval").body for text in texts]
    return bool(trees) and all(_free(tree, frozenset(tensors)) for tree in trees)


def _degree(node: ast.AST, names: frozenset[str]) -> int | None:
    """0: free of the names; 1: linear in them; None: anything else."""
    if isinstance(node, ast.Name):
        return int(node.id in names)
    if isinstance(node, ast.Constant):
        return 0
    if isinstance(node, ast.Subscript):
        return _degree(node.value, names) if _free(node.slice, names) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _degree(node.operand, names)
    if isinstance(node, ast.BinOp):
        return _degree_of_two(node, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in _KEEPING:
            return _degree(node.args[0], names)
        if node.func.id == "flat" and _free(node.args[1], names):
            return _degree(node.args[0], names)
    return 0 if _free(node, names) else None


def _degree_of_two(node: ast.BinOp, names: frozenset[str]) -> int | None:
    left, right = _degree(node.left, names), _degree(node.right, names)
    if left is None or right is None:
        return None
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return left if left == right else None
    if isinstance(node.op, ast.Mult):
        return left + right if left + right < 2 else None
    if isinstance(node.op, ast.Div):
        return left if right == 0 else None
    return 0 if left == right == 0 else None


def _free(node: ast.AST, names: frozenset[str]) -> bool:
    # Sizes do not depend on values.
    for child in ast.walk(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
            if child.func.id in ("size", "rank", "numel"):
                child.args = child.args[1:]
    return not any(isinstance(c, ast.Name) and c.id in names for c in ast.walk(node))


def joined_by(record) -> str | None:
    """How results of a reduction over parts are reduced to that over the whole."""
    found = set()
    for want in ("float", "bool", "int", "complex"):
        texts = {e.role: e.text for e in record.expressions if e.kind == want}
        if any(getattr(e, "choice", None) for e in record.expressions):
            return None
        if "combine" in texts:
            kind = _JOINED.get(texts["combine"])
            end = _ENDS.get(texts.get("finish", "acc"))
            if kind is None or end is None or (end and kind != "sum"):
                return None
            found.add(end or kind)
            break
    return found.pop() if found else None
