"""Operators of users: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.ops.aten.add.nothing  # The underlying op of 'aten.add' has no overload name 'nothing'
m.ops.aten.nothing  # '_OpNamespace' 'aten' object has no attribute 'nothing'
m.ops.aten.__nothing__  # '_OpNamespace' 'aten' object has no attribute '__nothing__'
m.library.define(1, '(Tensor x) -> Tensor')  # to be instance of str, got <class 'int'>
m.library.define('x', '(Tensor x) -> Tensor')  # "namespace::name", but got 'x'
m.library.Library('x', 'y')  # Unsupported kind: y
m.library.Library('prim', 'DEF')  # prim is a reserved namespace. Please try another
m.library.Library('errors1', 'DEF').define('f(Tensor x) -> Tensor', \
alias_analysis='x')\
  # Invalid alias_analysis type x
m.library.Library('errors2', 'DEF').impl('f', 1)  # Input function is required to be a
m.library.Library('errors4', 'DEF').define('f(Bad x) -> Tensor')\
  # unknown type 'Bad' in an operator schema
m.library.custom_op('x', mutates_args=())(lambda x: x)\
  # expected a qualified name `ns::name`, got 'x'
m.library.custom_op('errors6::f', mutates_args=())(lambda x: x)\
  # infer_schema(func): Parameter x must have a type annotation. Got func with
m.library.define('a::b', 'x')\
  # to look like e.g. "(Tensor x) -> Tensor" but got 'x'
m.library.Library('errors3', 'DEF').define('f(Tensor x')\
  # def: expected `name(arguments) -> returns`, got 'f(Tensor x'
m.library.Library('errors4', 'DEF').define('f(Tensor x) -> Bad')\
  # Tried to register an operator (errors4::f) with the same name and overload name
m.library.define('x::y', '() -> ()', tags=(1,))  # tags: expected a Tag, got 1
m.library.register_fake('x')(abs)  # expected a qualified name `ns::name`, got 'x'
m.library.Library('aten', 'IMPL').fallback(abs)  # Fallback can only be registered
"""

OWN = """
m.library.Library('_', 'IMPL').fallback(abs, 'CUDA')\
  # NotImplementedError: Library.fallback
(o := m.library.Library('errors8', 'DEF'), o.define('f(Tensor x) -> (Tensor, \
Tensor)'), o.impl('f', lambda x: x, 'CPU'), m.ops.errors8.f(ones(1)))\
  # RuntimeError: errors8::f: the kernel returned 1 values, its schema says 2
m.ops.__nothing__  # AttributeError: __nothing__
m.library.Library('aten', 'IMPL').impl('add.Tensor', abs, 'CPUX')\
  # ValueError: could not parse dispatch key: CPUX
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
