"""Recurrent layers and cells."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from .. import init
from .._native import native, warn
from .._types import MaybeDevice, MaybeDtype, MaybeTensor
from ..parameter import Parameter
from .module import Module

__all__ = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]

# What PyTorch keeps beside the parameters.
_FLAT = ("_flat_weights", "_flat_weight_refs")
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _packed_class():
    from ..utils.rnn import PackedSequence

    return PackedSequence


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated: `tensor.index_select(dim, permutation)`."""
    warn("`apply_permutation` is deprecated, use index_select", FutureWarning)
    return tensor.index_select(dim, permutation)


def _check_options(base, options) -> None:
    """Refuse sizes and flags that make no network."""
    dropout = options["dropout"]
    number = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability "
            "of an element being zeroed"
        )
    if dropout > 0 and options["num_layers"] == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so it has "
            f"no effect with dropout={dropout} and num_layers=1",
            level=5,
        )
    kinds = (("bias", bool), ("batch_first", bool))
    for name, kind in (*kinds, ("input_size", int), ("hidden_size", int)):
        value = options[name]
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    for name in ("input_size", "hidden_size", "num_layers"):
        if options[name] <= 0:
            raise ValueError(f"{name} must be greater than zero")
    proj_size = options["proj_size"]
    if proj_size < 0:
        raise ValueError(
            "proj_size should be a positive integer or zero to disable projections"
        )
    if proj_size >= options["hidden_size"]:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if base not in _GATES:
        raise ValueError(f"Unrecognized RNN mode: {base}")


def _draw(module) -> None:
    """Uniform first values of all parameters, in +-1/sqrt(hidden_size)."""
    bound = 1.0 / math.sqrt(max(module.hidden_size, 1))
    for value in module.parameters():
        init.uniform_(value, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights, checks, and the walk through layers.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size, hidden_size: last sizes of input and state.
        num_layers: layers stacked on each other.
        bias: whether there are biases.
        batch_first: (N, L, H) rather than (L, N, H).
        dropout: between layers, while training.
        bidirectional: a second network from the end to the beginning.
        proj_size: LSTM's output is projected to this size (Sak et al., 2014).
        device, dtype: of the parameters.

    Raises:
        ValueError, TypeError: options that make no network.

    Example:
        >>> list(taeda.nn.RNNBase("GRU", 2, 3).state_dict())
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        options = {
            "input_size": input_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "bias": bias,
            "batch_first": batch_first,
            "dropout": dropout,
            "bidirectional": bidirectional,
            "proj_size": proj_size,
        }
        super().__init__()
        _check_options(mode, options)
        self.__dict__.update(options, mode=mode, dropout=float(dropout))
        self._all_weights = []
        for layer in range(num_layers):
            for reverse in range(self._directions()):
                names = self._add_layer(layer, reverse, device, dtype)
                self._all_weights.append(names)
        self._flat_weights_names = [n for names in self._all_weights for n in names]
        self.reset_parameters()

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _output_size(self) -> int:
        """Width of the output of one direction."""
        return self.proj_size if self.proj_size > 0 else self.hidden_size

    def _add_layer(self, layer, reverse, device, dtype) -> list[str]:
        """Make the weights of one direction of one layer; returns their names."""
        gates, out = _GATES[self.mode] * self.hidden_size, self._output_size()
        width = self.input_size if layer == 0 else out * self._directions()
        shapes = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
        if self.bias:
            shapes.update(bias_ih=(gates,), bias_hh=(gates,))
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        for name, shape in shapes.items():
            values = taeda.empty(shape, device=device, dtype=dtype)
            setattr(self, name + suffix, Parameter(values))
        return [name + suffix for name in shapes]

    def __getstate__(self):
        # An attribute in PyTorch, whose files and ours are the same.
        return {**super().__getstate__(), "_flat_weights": self._flat_weights}

    def __setstate__(self, state) -> None:
        super().__setstate__({n: x for n, x in state.items() if n not in _FLAT})

    @property
    def _flat_weights(self) -> list:
        """All weights in the order that the natives take."""
        own = self._parameters
        names = self._flat_weights_names
        return [own[n] if n in own else getattr(self, n, None) for n in names]

    @_flat_weights.setter
    def _flat_weights(self, weights) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=False):
            if getattr(self, name, None) is not weight:
                setattr(self, name, weight)

    @property
    def all_weights(self) -> list:
        """The weights, as one list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: the kernels take the weights where they are."""

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in +-1/sqrt(hidden_size)."""
        _draw(self)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of another rank, width or dtype."""
        kind = self._flat_weights[0].dtype
        if input.dtype != kind and not taeda.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind})"
                f". Convert input: input.to({kind}), or convert model: "
                f"model.to({input.dtype})"
            )
        wanted, width = 3 if batch_sizes is None else 2, self.input_size
        if input.dim() != wanted:
            raise RuntimeError(
                f"input must have {wanted} dimensions, got {input.dim()}"
            )
        if input.size(-1) != width:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {width}, got "
                f"{input.size(-1)}"
            )

    def _state_size(self, input, batch_sizes, width):
        packed = batch_sizes is not None
        batch = int(batch_sizes[0]) if packed else input.size(1 - self.batch_first)
        return (self.num_layers * self._directions(), batch, width)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None):
        """(layers * directions, batch, output width)."""
        return self._state_size(input, batch_sizes, self._output_size())

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size, msg="Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape."""
        found, wanted = list(hx.size()), expected_hidden_size
        if found != list(wanted):
            raise RuntimeError(msg.format(wanted, found))

    def check_forward_args(
        self, input: Tensor, hidden: Tensor, batch_sizes: Tensor | None
    ) -> None:
        """Refuse an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        states = self._states(hidden)
        for state, size, text in zip(states, *self._expected(), strict=True):
            self.check_hidden_size(state, size(input, batch_sizes), text)

    def _states(self, hx):
        """The tensors of a state, which is one here and a pair in LSTM."""
        return (hx,)

    def _each(self, hx, change):
        """A state like `hx` of the changed tensors."""
        return change(hx)

    def _expected(self):
        """What tells the size of each state, and the error where it differs."""
        texts = ("Expected hidden size {}, got {}",)
        return (self.get_expected_hidden_size,), texts

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Tensor:
        """The states of the batch in another order."""
        if permutation is None:
            return hx
        return self._each(hx, lambda state: state.index_select(1, permutation))

    def _zeros(self, input, batch_sizes):
        """The state to begin with where none is given."""
        kind = {"dtype": input.dtype, "device": input.device}
        sizes = (size(input, batch_sizes) for size in self._expected()[0])
        made = tuple(taeda.zeros(size, **kind) for size in sizes)
        return made if len(made) > 1 else made[0]

    def _check_rank(self, hx, rank) -> None:
        """Refuse a state of another rank than the input's."""
        ranks = [state.dim() for state in self._states(hx)]
        if ranks == [rank] * len(ranks):
            return
        kind = "batched 3-D" if rank == 3 else "unbatched 2-D"
        if len(ranks) == 1:
            names, found = "hx", f"{ranks[0]}-D tensor"
        else:
            names, found = "hx and cx", f"({ranks[0]}-D, {ranks[1]}-D) tensors"
        raise RuntimeError(
            f"For {kind} input, {names} should also be {rank}-D but got {found}"
        )

    def _run(self, input, hx, batch_sizes):
        """Call the native; returns (output, state)."""
        options = (self.bias, self.num_layers, self.dropout, self.training)
        options += (self.bidirectional,)
        network = native(self.mode.lower())
        if batch_sizes is None:
            args = (input, hx, self._flat_weights, *options, self.batch_first)
        else:
            args = (input, batch_sizes, hx, self._flat_weights, *options)
        output, *state = network(*args)
        return output, state[0] if len(state) == 1 else tuple(state)

    def forward(self, input, hx=None):
        packed = _packed_class()
        if isinstance(input, packed):
            data, batch_sizes, order, back = input
            state = self._start(data, hx, batch_sizes, order)
            output, state = self._run(data, state, batch_sizes)
            state = self.permute_hidden(state, back)
            return packed(output, batch_sizes, order, back), state
        rank = input.dim()
        if rank not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {rank}D "
                "tensor instead"
            )
        if hx is not None:
            self._check_rank(hx, rank)
        if rank == 3:
            return self._run(input, self._start(input, hx, None, None), None)
        at = 0 if self.batch_first else 1
        input = input.unsqueeze(at)
        if hx is not None:
            hx = self._each(hx, lambda state: state.unsqueeze(1))
        output, state = self._run(input, self._start(input, hx, None, None), None)
        return output.squeeze(at), self._each(state, lambda h: h.squeeze(1))

    def _start(self, input, hx, batch_sizes, order):
        """The checked state to begin with."""
        if hx is None:
            hx = self._zeros(input, batch_sizes)
        else:
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, batch_sizes)
        return hx

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            value = getattr(self, name)
            if value != usual:
                shown += f", {name}={value}"
        return shown


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), for each layer.

    Elman, "Finding Structure in Time", 1990.

    Args:
        input_size, hidden_size, num_layers: as for `RNNBase`.
        nonlinearity: "tanh" or "relu".
        bias, batch_first, dropout, bidirectional, device, dtype: as for `RNNBase`.

    In forward: input (L, N, input_size), or without N, or a PackedSequence; hx
    (layers * directions, N, hidden_size), default 0. Returns the output of the last
    layer for every step, and the last state.

    Raises:
        ValueError: another nonlinearity; `proj_size`, which only LSTM has.

    Example:
        >>> output, h = taeda.nn.RNN(2, 3)(taeda.ones(5, 1, 2))
        >>> tuple(output.shape), tuple(h.shape)
        ((5, 1, 3), (1, 1, 3))
    """

    def __init__(self, *args, **kwargs) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


def _no_projection(kwargs) -> None:
    if "proj_size" in kwargs:
        raise ValueError(
            "proj_size argument is only supported for LSTM, not RNN or GRU"
        )


class LSTM(RNNBase):
    """c_t = f c_(t-1) + i g, h_t = o tanh(c_t), gates from x_t and h_(t-1).

    i, f, o = sigmoid(W x + b + U h + d), g = tanh(the same), in the order i, f, g, o
    of the rows. Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, device, dtype: as for `RNNBase`.

    In forward: input as for `RNN`; hx the pair (h_0, c_0). Returns the output and the
    pair (h_n, c_n).

    Example:
        >>> output, (h, c) = taeda.nn.LSTM(2, 3)(taeda.ones(5, 1, 2))
        >>> tuple(output.shape), tuple(c.shape)
        ((5, 1, 3), (1, 1, 3))
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None):
        """(layers * directions, batch, hidden_size)."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def _states(self, hx):
        return hx[0], hx[1]

    def _each(self, hx, change):
        return change(hx[0]), change(hx[1])

    def _expected(self):
        sizes = (self.get_expected_hidden_size, self.get_expected_cell_size)
        return sizes, [f"Expected hidden[{i}] size {{}}, got {{}}" for i in (0, 1)]


class GRU(RNNBase):
    """h_t = (1 - z) n + z h_(t-1), gates from x_t and h_(t-1).

    r, z = sigmoid(W x + b + U h + d), n = tanh(W x + b + r (U h + d)), in the order
    r, z, n of the rows. Cho et al., "Learning Phrase Representations using RNN
    Encoder-Decoder", 2014.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device, dtype: as for `RNNBase`.

    In forward: as `RNN`.

    Raises:
        ValueError: `proj_size`, which only LSTM has.

    Example:
        >>> output, h = taeda.nn.GRU(2, 3, bidirectional=True)(taeda.ones(5, 1, 2))
        >>> tuple(output.shape), tuple(h.shape)
        ((5, 1, 6), (2, 1, 3))
    """

    def __init__(self, *args, **kwargs) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """Weights and checks of one step of a recurrent network.

    Args:
        input_size, hidden_size: last sizes of input and state.
        bias: whether there are biases.
        num_chunks: number of gates.
        device, dtype: of the parameters.

    Attributes:
        weight_ih, weight_hh (Tensor): (num_chunks * hidden_size, input or hidden_size).
        bias_ih, bias_hh (Tensor): (num_chunks * hidden_size,).
    """

    __constants__ = ["input_size", "hidden_size", "bias"]
    _native: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        for name, shape in (
            ("weight_ih", (gates, input_size)),
            ("weight_hh", (gates, hidden_size)),
            ("bias_ih", (gates,)),
            ("bias_hh", (gates,)),
        ):
            wanted = bias or name.startswith("weight")
            values = taeda.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in +-1/sqrt(hidden_size)."""
        _draw(self)

    def _expect(self, name, tensor) -> None:
        if tensor is not None and tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {name} to be 1D or 2D, got "
                f"{tensor.dim()}D instead"
            )

    def _zeros(self, input):
        shape = (input.size(0), self.hidden_size)
        return taeda.zeros(shape, dtype=input.dtype, device=input.device)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, input, hx, step):
        """One step of a cell with one state."""
        self._expect("input", input)
        self._expect("hidden", hx)
        single = input.dim() == 1
        input = input.unsqueeze(0) if single else input
        if hx is None:
            hx = self._zeros(input)
        elif single:
            hx = hx.unsqueeze(0)
        result = native(step)(input, hx, *self._weights())
        return result.squeeze(0) if single else result

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return (
            shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"
        )


class RNNCell(RNNCellBase):
    """One step of `RNN`: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        input_size, hidden_size, bias, device, dtype: as for `RNNCellBase`.
        nonlinearity: "tanh" or "relu".

    In forward: input (N, input_size) or (input_size,); hx likewise, default 0.

    Raises:
        RuntimeError: another nonlinearity, in forward.

    Example:
        >>> tuple(taeda.nn.RNNCell(2, 3)(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: MaybeTensor = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(input, hx, f"rnn_{self.nonlinearity}_cell")


class GRUCell(RNNCellBase):
    """One step of `GRU`; forward as `RNNCell`.

    Args:
        input_size, hidden_size, bias, device, dtype: as for `RNNCellBase`.

    Example:
        >>> tuple(taeda.nn.GRUCell(2, 3)(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: MaybeTensor = None) -> Tensor:
        return self._step(input, hx, "gru_cell")


class LSTMCell(RNNCellBase):
    """One step of `LSTM`; hx and the result are pairs (h, c).

    Args:
        input_size, hidden_size, bias, device, dtype: as for `RNNCellBase`.

    Example:
        >>> h, c = taeda.nn.LSTMCell(2, 3)(taeda.ones(1, 2))
        >>> tuple(c.shape)
        (1, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx=None):
        self._expect("input", input)
        for i, state in enumerate(hx or ()):
            self._expect(f"hx[{i}]", state)
        single = input.dim() == 1
        input = input.unsqueeze(0) if single else input
        if hx is None:
            hx = (self._zeros(input),) * 2
        elif single:
            hx = tuple(state.unsqueeze(0) for state in hx)
        h, c = native("lstm_cell")(input, hx, *self._weights())
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)
