"""Jacobians, Hessians, and products of vectors with them."""

from __future__ import annotations

from collections.abc import Callable

import taeda

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


_OUTPUTS = "outputs of the user-provided function"


def _tuple_of(values, what: str, op: str) -> tuple[bool, tuple]:
    """Whether the caller gave several tensors, and all of them.

    Args:
        what: names the values, in the error.
        op: the function that they are given to, in the error.
    """
    is_tuple = isinstance(values, (tuple, list))
    found = tuple(values) if is_tuple else (values,)
    for i, v in enumerate(found):
        if not isinstance(v, taeda.Tensor):
            which = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {op} must be either a Tensor or a tuple of "
                f"Tensors but the {which} has type {type(v)}."
            )
    return is_tuple, found


def _fresh(inputs: tuple, create_graph: bool) -> tuple:
    """Tensors like the inputs that nothing else depends on."""
    if create_graph:
        return tuple(
            i.view_as(i) if i.requires_grad else i.detach().requires_grad_()
            for i in inputs
        )
    return tuple(i.detach().requires_grad_() for i in inputs)


def _finish(values, create_graph: bool):
    """Results without graph unless one was asked for."""
    if isinstance(values, (tuple, list)):
        return tuple(_finish(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _like(is_tuple: bool, values: tuple):
    return values if is_tuple else values[0]


def _check_shapes(v: tuple, like: tuple, several: bool) -> None:
    if len(v) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            if several
            else f"The given v should contain a single Tensor. It has {len(v)}."
        )
    for i, (a, b) in enumerate(zip(v, like, strict=True)):
        if a.shape != b.shape:
            entry = f"Entry {i} in v" if several else "v"
            raise RuntimeError(
                f"{entry} has invalid size: should be {b.shape} but got {a.shape}."
            )


def _default_v(v, like: tuple, several: bool, op: str) -> tuple:
    """`v`, which belongs to the outputs for vjp, else to the inputs."""
    if v is not None:
        _, v = _tuple_of(v, "v", op)
        _check_shapes(v, like, several)
        return v
    if len(like) != 1 or like[0].numel() != 1:
        single = "a single Tensor with a single element."
        raise RuntimeError(
            "The vector v can only be None if the user-provided function returns "
            + single
            if op == "vjp"
            else "The vector v can only be None if the input to the user-provided "
            f"function is {single}"
        )
    return (taeda.ones_like(like[0]),)


def _check_recorded(values: tuple, strict: bool) -> None:
    """In strict mode all outputs have to depend on the inputs."""
    for i, value in enumerate(values):
        if strict and not value.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients."
                " In strict mode outputs must be computed in a differentiable manner "
                "from the inputs."
            )


# What does not depend on input {i}, by the number of derivatives taken so far.
_INDEPENDENT = (
    "The output of the user-provided function is independent of input {i}.",
    "The jacobian of the user-provided function is independent of input {i}.",
    "The hessian of the user-provided function is independent of input {i}.",
)


def _grad(
    outputs: tuple,
    inputs: tuple,
    v: tuple,
    create_graph: bool,
    strict: bool = False,
    order: int = 0,
    what: str | None = None,
    check_graph: bool = True,
) -> tuple:
    """Gradients with zeros for inputs without one.

    Args:
        create_graph: the gradients can be differentiated.
        strict: an input without a gradient is an error, and so is a gradient that
            does not depend on the inputs where its graph is asked for.
        order: of the derivative that `outputs` are.
        what: the sentence for an input without a gradient; by `order` if None.
        check_graph: whether strict asks for the gradients' graph, too.
    """
    needed = [(o, g) for o, g in zip(outputs, v, strict=True) if o.requires_grad]
    found: tuple = (None,) * len(inputs)
    if needed:
        found = taeda.autograd.grad(
            [o for o, _ in needed],
            inputs,
            [g for _, g in needed],
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
        )
    for i, g in enumerate(found if strict else ()):
        if g is None:
            text = (what or _INDEPENDENT[order]).format(i=i)
            raise RuntimeError(f"{text} This is not allowed in strict mode.")
        if create_graph and check_graph and not g.requires_grad:
            raise RuntimeError(
                f"{_INDEPENDENT[order + 1].format(i=i)} This is not allowed in strict "
                "mode when create_graph=True."
            )
    return tuple(
        taeda.zeros_like(i) if g is None else g
        for g, i in zip(found, inputs, strict=True)
    )


def vjp(func: Callable, inputs, v=None, create_graph=False, strict=False):
    """(outputs, v @ J): the product of a vector with the Jacobian of `func`.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: where the Jacobian is taken.
        v: of the outputs' shapes; may be left out for a single number.
        create_graph: results can be differentiated.
        strict: an input that the outputs do not depend on is an error.
    """
    with taeda.autograd.enable_grad():
        is_tuple, given = _tuple_of(inputs, "inputs", "vjp")
        given = _fresh(given, create_graph)
        several, outputs = _tuple_of(func(*given), _OUTPUTS, "vjp")
        _check_recorded(outputs, strict)
        v = _default_v(v, outputs, several, "vjp")
        found = _grad(outputs, given, v, create_graph, strict)
    return (
        _finish(_like(several, outputs), create_graph),
        _finish(_like(is_tuple, found), create_graph),
    )


def jvp(func: Callable, inputs, v=None, create_graph=False, strict=False):
    """(outputs, J @ v): the product of the Jacobian of `func` with a vector.

    By differentiating the product of a vector with the Jacobian once more.
    """
    with taeda.autograd.enable_grad():
        is_tuple, given = _tuple_of(inputs, "inputs", "jvp")
        given = _fresh(given, create_graph)
        v = _default_v(v, given, is_tuple, "jvp")
        several, outputs = _tuple_of(func(*given), _OUTPUTS, "jvp")
        _check_recorded(outputs, strict)
        dummies = tuple(taeda.zeros_like(o).requires_grad_() for o in outputs)
        products = _grad(outputs, given, dummies, True, strict)
        found = _through(products, dummies, v, create_graph, strict)
    return (
        _finish(_like(several, outputs), create_graph),
        _finish(_like(several, found), create_graph),
    )


def _through(products: tuple, dummies: tuple, v, create_graph, strict, order=0):
    """The derivative of products with `dummies`, which they are linear in."""
    return _grad(
        products,
        dummies,
        v,
        create_graph,
        strict,
        order,
        "The gradient with respect to the input is independent of entry {i} in the "
        "grad_outputs when using the double backward trick to compute forward mode "
        "gradients.",
    )


def jacobian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
):
    """The Jacobian of `func`: for each output and input a tensor of both shapes.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: where the Jacobian is taken.
        create_graph: results can be differentiated.
        strict: an input that an output does not depend on is an error.
        vectorize: rows (or columns) are computed at once, as a batch.
        strategy: "reverse-mode", by rows; "forward-mode", by columns, which needs
            vectorize and gives results without graph of their own making.

    Raises:
        AssertionError: another strategy.
        RuntimeError: strict together with vectorize or "forward-mode"; with strict, an
            input that an output does not depend on.
        NotImplementedError: "forward-mode" with create_graph or without vectorize.

    Example:
        >>> taeda.autograd.functional.jacobian(taeda.sin, taeda.zeros(1))
        tensor([[1.]])
    """
    _check_options(strategy, create_graph, strict, vectorize)
    is_tuple, given = _tuple_of(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        return _forward_jacobian(func, given, is_tuple)
    with taeda.autograd.enable_grad():
        given = _fresh(given, create_graph)
        several, outputs = _tuple_of(func(*given), _OUTPUTS, "jacobian")
        _check_recorded(outputs, strict)
        if vectorize:
            rows = _batched_jacobian(outputs, given, create_graph)
        else:
            rows = tuple(
                _output_jacobian(o, given, create_graph, strict, number)
                for number, o in enumerate(outputs)
            )
    if not is_tuple:
        rows = tuple(row[0] for row in rows)
    return _finish(_like(several, rows), create_graph)


def _check_options(strategy: str, create_graph, strict, vectorize) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", got '
            f"{strategy!r}"
        )
    forward = strategy == "forward-mode"
    if strict and (forward or vectorize):
        other = 'strategy="forward-mode"' if forward else "vectorize=True"
        raise RuntimeError(
            f"jacobian: `strict=True` and `{other}` are not supported together"
        )
    if forward and create_graph:
        raise NotImplementedError(
            'jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
            "supported together"
        )
    if forward and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is "
            "only implemented for `vectorize=True`."
        )


def _forward_jacobian(func: Callable, given: tuple, is_tuple: bool):
    """By columns: the derivatives along all unit vectors of the inputs at once."""
    from taeda._functorch.jacobians import jacfwd

    several = False

    def outputs(*args):
        nonlocal several
        several, found = _tuple_of(func(*args), _OUTPUTS, "jacobian")
        return found

    places = tuple(range(len(given)))
    rows = jacfwd(outputs, places)(*given)
    return _like(several, tuple(_like(is_tuple, row) for row in rows))


def _batched_jacobian(outputs: tuple, inputs: tuple, create_graph: bool) -> tuple:
    """By rows: one backward of a batch of unit vectors."""
    from taeda._functorch.jacobians import _blocks, _units

    needed = [o for o in outputs if o.requires_grad]
    found: tuple = (None,) * len(inputs)
    if needed:
        found = taeda.autograd.grad(
            needed,
            inputs,
            _units(needed),
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
    total = sum(o.numel() for o in needed)
    columns = [
        i.new_zeros((total, *i.shape)) if g is None else g
        for g, i in zip(found, inputs, strict=True)
    ]
    blocks = iter(_blocks(columns, needed, front=True))
    return tuple(
        tuple(next(blocks))
        if o.requires_grad
        else tuple(o.new_zeros((*o.shape, *i.shape)) for i in inputs)
        for o in outputs
    )


def _output_jacobian(
    output, inputs: tuple, create_graph: bool, strict: bool, number: int
) -> tuple:
    what = (
        f"Output {number} of the user-provided function is independent of input {{i}}."
    )
    flat = output.reshape(-1)
    columns: list[list] = [[] for _ in inputs]
    for j in range(flat.numel()):
        element = flat[j]
        one = taeda.ones_like(element)
        grads = _grad((element,), inputs, (one,), create_graph, strict, what=what)
        for column, g in zip(columns, grads, strict=True):
            column.append(g)
    return tuple(
        taeda.stack(column).reshape(tuple(output.shape) + tuple(i.shape))
        if column
        else output.new_zeros(tuple(output.shape) + tuple(i.shape))
        for column, i in zip(columns, inputs, strict=True)
    )


def _single(func: Callable, op: str, strict: bool = False) -> Callable:
    def checked(*args):
        out = func(*args)
        is_tuple, outputs = _tuple_of(out, _OUTPUTS, op)
        if is_tuple and len(outputs) != 1:
            raise RuntimeError(
                f"The function given to {op} should return a single Tensor"
            )
        if outputs[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {op} should contain a "
                "single element"
            )
        _check_recorded(outputs, strict)
        return outputs[0].reshape(())

    return checked


def _check_gradients(gradients: tuple, strict: bool) -> None:
    for i, gradient in enumerate(gradients):
        if strict and not gradient.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the "
                f"user-provided function with respect to input {i} is independent of "
                "the input. This is not allowed in strict mode. Strict mode needs a "
                "function that is twice differentiable and whose jacobian depends on "
                "the inputs, which that of a linear function does not."
            )


def hessian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):
    """The second derivatives of a scalar function, by pairs of inputs.

    Args:
        func: takes the inputs, returns a tensor with one element.
        inputs: where the derivatives are taken.
        create_graph: results can be differentiated.
        strict: an input that the output does not depend on is an error.
        vectorize: rows are computed at once, as a batch.
        outer_jacobian_strategy: as `strategy` of `jacobian`, for the second
            derivative.

    Raises:
        AssertionError, RuntimeError, NotImplementedError: as `jacobian`.

    Example:
        >>> square = lambda x: (x * x).sum()
        >>> taeda.autograd.functional.hessian(square, taeda.zeros(1))
        tensor([[2.]])
    """
    is_tuple, given = _tuple_of(inputs, "inputs", "hessian")
    _check_options(outer_jacobian_strategy, create_graph, strict, vectorize)
    forward = outer_jacobian_strategy == "forward-mode"

    def gradient(*args):
        if forward:
            from taeda._functorch.jacobians import jacrev

            return jacrev(_single(func, "hessian"), tuple(range(len(args))))(*args)
        single = _single(func, "hessian", strict)
        found = jacobian(single, args, create_graph=True)
        _check_gradients(found, strict)
        return tuple(found)

    rows = jacobian(
        gradient,
        given,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return rows if is_tuple else rows[0][0]


def vhp(func: Callable, inputs, v=None, create_graph=False, strict=False):
    """(output, v @ H): the product of a vector with the Hessian of `func`."""
    with taeda.autograd.enable_grad():
        is_tuple, given = _tuple_of(inputs, "inputs", "vhp")
        given = _fresh(given, create_graph)
        v = _default_v(v, given, is_tuple, "vhp")
        output = _single(func, "vhp", strict)(*given)
        one = (taeda.ones_like(output),)
        first = _grad((output,), given, one, True, strict, check_graph=False)
        _check_gradients(first, strict)
        found = _grad(first, given, v, create_graph, strict, order=1)
    return (
        _finish(output, create_graph),
        _finish(_like(is_tuple, found), create_graph),
    )


def hvp(func: Callable, inputs, v=None, create_graph=False, strict=False):
    """(output, H @ v): the product of the Hessian of `func` with a vector."""
    with taeda.autograd.enable_grad():
        is_tuple, given = _tuple_of(inputs, "inputs", "hvp")
        given = _fresh(given, create_graph)
        v = _default_v(v, given, is_tuple, "hvp")
        output = _single(func, "hvp", strict)(*given)
        one = (taeda.ones_like(output),)
        first = _grad((output,), given, one, True, strict, check_graph=False)
        _check_gradients(first, strict)
        dummies = tuple(taeda.zeros_like(i).requires_grad_() for i in given)
        second = _grad(first, given, dummies, True, strict, order=1)
        found = _through(second, dummies, v, create_graph, strict, order=1)
    return (
        _finish(output, create_graph),
        _finish(_like(is_tuple, found), create_graph),
    )
