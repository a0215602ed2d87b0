"""What the other process does; each is imported there by name."""

from __future__ import annotations


def add_and_return(source, results) -> None:
    """Adds one to each tensor that comes, and sends it back."""
    while (given := source.get()) is not None:
        given.add_(1)
        results.put(given)


def look(source, results) -> None:
    """Tells whether two tensors of two messages share memory here."""
    first, second = source.get(), source.get()
    first.fill_(7)
    results.put(
        (
            second.tolist(),
            first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr(),
            first.is_shared(),
        )
    )
    source.get()


def train(module) -> None:
    """Writes into a module's parameters and buffers."""
    import taeda

    with taeda.no_grad():
        for value in (*module.parameters(), *module.buffers()):
            value.fill_(3)


def fill(tensor, value: float) -> None:
    """Writes into a tensor."""
    tensor.fill_(value)


def double(tensor):
    """For pools."""
    return tensor * 2
