"""Ranks in a grid: a group for each row of each dimension.

A mesh is a tensor of global ranks with names for its dimensions. Parts of it
(`mesh["tp"]`, `mesh._flatten()`) know the mesh that they come from and share its
groups.
"""

from __future__ import annotations

import math
from typing import Any

import taeda

from ._join import (
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
)
from ._subgroups import new_subgroups_by_enumeration
from ._world import GroupMember, _world

__all__ = ["DeviceMesh", "init_device_mesh"]

Tensor = taeda.Tensor


def _rank_tensor(mesh) -> Tensor:
    """Global ranks as int32, also where the values of a tensor are needed later."""
    if isinstance(mesh, Tensor):
        if mesh.device.type != "cpu" and mesh.device.type != "meta":
            raise ValueError(f"`mesh` must be a CPU tensor, got {mesh}")
        return mesh.detach().to(dtype=taeda.int32)
    return taeda.tensor(mesh, dtype=taeda.int32)


def _join_world(size: int) -> None:
    """Joins the default group from the environment where that was not done."""
    if not is_initialized():
        init_process_group()
    world = get_world_size()
    if size > world:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {world}, but found "
            f"{size} ranks!"
        )


class DeviceMesh:
    """A grid of ranks.

    Args:
        device_type: of the ranks' tensors, "cpu".
        mesh: global ranks, nested lists or a tensor of integers.
        mesh_dim_names: of the dimensions.
        backend_override: a backend and its options for each dimension.

    Raises:
        RuntimeError: more ranks than there are.
        ValueError: a rank named twice.
    """

    # Meshes that were entered by `with`; a thread enters and leaves its own.
    _entered: list[DeviceMesh] = []

    def __init__(
        self,
        device_type: str,
        mesh=None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override=None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _root_mesh: DeviceMesh | None = None,
        _groups: list | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("DeviceMesh: expected ranks for `mesh`, got None")
        self._device_type = device_type
        self._mesh = _rank_tensor(mesh)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._mesh_dim_names = names
        self._root, self._flattened = _root_mesh, {}
        self._override = backend_override or ((None, None),) * self._mesh.ndim
        self._groups: list[Any] = list(_groups or [])
        if _root_mesh is None and _init_backend and _groups is None:
            _join_world(self._mesh.numel())
            self._groups = self._make_groups()
        if _rank is None:
            _rank = get_rank() if is_initialized() else 0
        self._rank = _rank
        self._hash: int | None = None
        self._root_dims: tuple[int, ...] = ()  # of a flattened mesh
        self._coordinate = self._place()

    def _place(self) -> tuple[int, ...] | None:
        at = (self._mesh == self._rank).nonzero().tolist()
        return tuple(at[0]) if at else None

    def _make_groups(self) -> list:
        """For each dimension this rank's group; all ranks make all of them."""
        ranks = self._mesh.flatten().tolist()
        size = get_world_size()
        for rank in ranks:
            if not 0 <= rank < size:
                raise ValueError(
                    f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} "
                    f"(world_size={size})"
                )
        if len(set(ranks)) != len(ranks):
            raise ValueError(
                f"ranks list must not contain duplicate entries, got {ranks}"
            )
        whole = list(range(get_world_size()))
        found = []
        for dim in range(self._mesh.ndim):
            backend, options = self._override[dim]
            if self._mesh.ndim == 1 and ranks == whole and backend is None:
                found.append(_world.default_pg)
                continue
            found.append(self._group_along(self._mesh, dim, backend, options))
        return found

    def _group_along(
        self, mesh: Tensor, dim: int, backend=None, options=None, name: str = ""
    ):
        rows = mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist()
        if not name:
            name = self._mesh_dim_names[dim] if self._mesh_dim_names else f"dim_{dim}"
        mine, _ = new_subgroups_by_enumeration(
            rows, None, backend, options, f"mesh_{name}"
        )
        return GroupMember.NON_GROUP_MEMBER if mine is None else mine

    # What it is.

    @property
    def device_type(self) -> str:
        """The kind of device of the ranks' tensors."""
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The global ranks, int32."""
        return self._mesh

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The dimensions' names."""
        return self._mesh_dim_names

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks lie along each dimension."""
        return tuple(self._mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks it has, or lie along a dimension."""
        return self._mesh.numel() if mesh_dim is None else self._mesh.shape[mesh_dim]

    def get_rank(self) -> int:
        """This process's global rank."""
        return self._rank

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this rank is; None outside of the mesh."""
        return self._coordinate

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._coordinate is not None

    def _sym_get_coordinate(self, index: int) -> int:
        if self._coordinate is None:
            raise RuntimeError("DeviceMesh: this rank is not in the mesh")
        return self._coordinate[index]

    # Dimensions.

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        names = self._mesh_dim_names or ()
        if mesh_dim_name not in names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist. Available mesh "
                f"dimensions are: {names}"
            )
        return names.index(mesh_dim_name)

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg "
                    "`mesh_dim` needs to be specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            return self._get_mesh_dim_by_name(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None):
        """This rank's group along a dimension.

        Args:
            mesh_dim: its number or name; not needed where there is one.

        Raises:
            RuntimeError: there are several and none is named, or no groups were made.
        """
        if isinstance(mesh_dim, str):
            flat = self._get_root_mesh()._flattened.get(mesh_dim)
            if flat is not None and mesh_dim not in (self._mesh_dim_names or ()):
                return flat.get_group()
        dim = self._dim(mesh_dim)
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[dim]

    def get_all_groups(self) -> list:
        """This rank's groups, one for each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's place along a dimension.

        Raises:
            RuntimeError: there are several dimensions and none is named.
        """
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg "
                "`mesh_dim` needs to be specified when device_mesh.ndim > 1."
            )
        return get_rank(self.get_group(self._dim(mesh_dim)))

    # Parts.

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one is a part of, or itself."""
        return self._root or self

    _root_mesh = property(_get_root_mesh)

    def _get_root_mesh_dim(self) -> int | None:
        """The only dimension's number in the mesh that this is a part of."""
        root = self._get_root_mesh()
        if self.ndim != 1 or not self._mesh_dim_names or root is self:
            return None
        names = root._mesh_dim_names or ()
        name = self._mesh_dim_names[0]
        return names.index(name) if name in names else None

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part with this rank along named dimensions, in the mesh's order.

        Raises:
            KeyError: a name that the mesh does not have.
        """
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        asked = mesh_dim_names
        names = (asked,) if isinstance(asked, str) else tuple(asked)
        if names == self._mesh_dim_names:
            return self
        root = self._get_root_mesh()
        if len(names) == 1 and names[0] in root._flattened:
            return root._flattened[names[0]]
        own = self._mesh_dim_names
        if not set(names) <= set(own):
            return self._with_flattened(names)
        dims = [own.index(name) for name in names]
        self._check_order(names, dims)
        groups = [self._groups[d] for d in dims] if self._groups else []
        return self._part(self._around(dims), names, groups)

    def _check_order(self, names: tuple[str, ...], dims: list[int]) -> None:
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if dims != sorted(dims):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be "
                "in ascending order."
            )

    def _with_flattened(self, names: tuple[str, ...]) -> DeviceMesh:
        """The part along dimensions of which some were made by `_flatten`."""
        root = self._get_root_mesh()
        all_names = root._mesh_dim_names or ()
        own = self._mesh_dim_names or ()
        within = {all_names.index(n) for n in own if n in all_names}
        flattened = {
            n: m for n, m in root._flattened.items() if set(m._root_dims) <= within
        }
        if not set(names) <= {*own, *flattened}:
            valid = [*own, *(n for n in flattened if n not in own)]
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
                f"{valid}."
            )
        parts = [
            flattened[n]._root_dims if n in flattened else (all_names.index(n),)
            for n in names
        ]
        dims = [d for part in parts for d in part]
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        self._check_order(names, [part[0] for part in parts])
        ranks = root._around(dims)
        sorted_dims = sorted(dims)
        ranks = ranks.permute([sorted_dims.index(d) for d in dims])
        sizes = [math.prod(root.shape[d] for d in part) for part in parts]
        groups = []
        if root._groups:
            groups = [
                flattened[n]._groups[0] if n in flattened else root._groups[part[0]]
                for n, part in zip(names, parts, strict=True)
            ]
        return self._part(ranks.reshape(sizes), names, groups)

    def _around(self, dims: list[int]) -> Tensor:
        """The ranks along some dimensions in whose row this rank is."""
        place = self._coordinate or (0,) * self.ndim
        index = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        return self._mesh[index]

    def _part(self, ranks: Tensor, names, groups: list) -> DeviceMesh:
        return DeviceMesh(
            self._device_type,
            ranks,
            mesh_dim_names=names,
            _init_backend=False,
            _rank=self._rank,
            _root_mesh=self._get_root_mesh(),
            _groups=groups,
        )

    def _flatten(
        self, mesh_dim_name: str | None = None, backend_override=None
    ) -> DeviceMesh:
        """One dimension of all ranks of this part; all ranks of the root call it.

        Args:
            mesh_dim_name: by default the names, joined by underscores.
            backend_override: a backend, or one with options.
        """
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        if self.ndim == 1 and name == self._mesh_dim_names[0]:
            return self
        if name in root._flattened:
            return root._flattened[name]
        if name in (root._mesh_dim_names or ()):
            raise ValueError(
                f"{name} already exists for submesh of the root mesh; choose another"
            )
        backend, options = _backend_pair(backend_override)
        dims = [root._mesh_dim_names.index(n) for n in self._mesh_dim_names]
        rest = [d for d in range(root.ndim) if d not in dims]
        rows = root._mesh.permute(*rest, *dims).reshape(-1, self._mesh.numel())
        mine, _ = new_subgroups_by_enumeration(
            rows.tolist(), None, backend, options, f"mesh_{name}"
        )
        group = GroupMember.NON_GROUP_MEMBER if mine is None else mine
        made = self._part(self._mesh.reshape(-1), (name,), [group])
        made._root_dims = tuple(dims)
        root._flattened[name] = made
        return made

    def _unflatten(
        self, dim: int | str, mesh_sizes, mesh_dim_names, backend_override=None
    ) -> DeviceMesh:
        """A mesh in which one dimension is several; all ranks call it."""
        number = self._dim(dim)
        if math.prod(mesh_sizes) != self.shape[number]:
            raise ValueError(
                f"The product of mesh_sizes={tuple(mesh_sizes)} is "
                f"{math.prod(mesh_sizes)}, but the original dimension at dim={number} "
                f"has size {self.shape[number]}. These must be equal for unflatten to "
                "work correctly."
            )
        before, after = self.shape[:number], self.shape[number + 1 :]
        ranks = self._mesh.reshape(*before, *mesh_sizes, *after)
        own = self._mesh_dim_names or tuple(f"dim_{d}" for d in range(self.ndim))
        names = (*own[:number], *mesh_dim_names, *own[number + 1 :])
        made = self._part(ranks, names, [])
        root = self._get_root_mesh()
        if root is self:
            made._root = None
        if not self._groups:
            return made
        # All parts of the root make their groups at once, in the same order.
        dims = [*self._root_dims] or range(root.ndim)
        if root is not self and not self._root_dims:
            dims = [root._mesh_dim_names.index(n) for n in own]
        rest = [d for d in range(root.ndim) if d not in dims]
        whole = root._mesh.permute(*rest, *dims).reshape(-1, *ranks.shape)
        for d, name in enumerate(names):
            is_new = number <= d < number + len(mesh_sizes)
            kept = d if d < number else d - len(mesh_sizes) + 1
            if is_new:
                backend = (backend_override or {}).get(name)
                group = made._group_along(whole, d + 1, *_backend_pair(backend), name)
            else:
                group = self._groups[kept]
            made._groups.append(group)
        return made

    @staticmethod
    def _concatenate(device_mesh_list: list[DeviceMesh]) -> DeviceMesh:
        """The part of a mesh along the dimensions of several of its parts."""
        root = device_mesh_list[0]._get_root_mesh()
        if any(m._get_root_mesh() is not root for m in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes of different meshes")
        return root[tuple(n for m in device_mesh_list for n in m._mesh_dim_names or ())]

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The parts along a dimension, those without this rank too."""
        dim = self._get_mesh_dim_by_name(mesh_dim_name)
        rows = self._mesh.movedim(dim, -1).reshape(-1, self.shape[dim])
        groups = [self._groups[dim]] if self._groups else []
        return [
            self._part(row, (mesh_dim_name,), groups if self._rank in row else [])
            for row in rows
        ]

    @staticmethod
    def from_group(
        group, device_type: str, mesh=None, *, mesh_dim_names=None
    ) -> DeviceMesh:
        """A mesh of groups that exist.

        Args:
            group: one group, or one for each dimension.
            device_type: of the ranks' tensors.
            mesh: the ranks; needed for several groups.
            mesh_dim_names: of the dimensions.

        Raises:
            ValueError: the ranks do not fit the groups.
        """
        if not isinstance(group, list):
            ranks = get_process_group_ranks(group)
            given = None if mesh is None else _rank_tensor(mesh).tolist()
            if given is not None and given != ranks:
                raise ValueError(
                    f"Invalid mesh {given} for ProcessGroup with ranks {ranks}"
                )
            return DeviceMesh(
                device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group]
            )
        if not group:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        tensor = _rank_tensor(mesh)
        if tensor.ndim != len(group):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{tensor.tolist()} and {len(group)} ProcessGroups"
            )
        return DeviceMesh(
            device_type, tensor, mesh_dim_names=mesh_dim_names, _groups=group
        )

    # As a value.

    def _hash_key(self) -> tuple:
        return (
            tuple(self._mesh.flatten().tolist()),
            self.shape,
            self._device_type,
            self._mesh_dim_names,
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._hash_key())
        return self._hash

    def __eq__(self, other: object) -> bool:
        same = self is other
        if not same and isinstance(other, DeviceMesh):
            same = hash(self) == hash(other) and self._hash_key() == other._hash_key()
        return same

    def __repr__(self) -> str:
        names = self._mesh_dim_names
        if names:
            inside = ", ".join(
                f"{n}={s}" for n, s in zip(names, self.shape, strict=True)
            )
            inside = f"({inside})"
        else:
            inside = str(self.shape)
        stride = tuple(self._mesh.stride())
        return f"DeviceMesh({inside}, '{self._device_type}', stride={stride})"

    def __enter__(self) -> DeviceMesh:
        DeviceMesh._entered.append(self)
        return self

    def __exit__(self, exc_type, exc_value, exc_traceback) -> None:
        DeviceMesh._entered.pop()

    def __getstate__(self) -> dict:
        state = {**self.__dict__, "_hash": None}  # texts hash otherwise elsewhere
        # A list is whole when it is read; a tensor's memory may be filled later.
        state["_mesh"] = self._mesh.tolist()
        # Groups are found again by their names, in a process that has them.
        state["_group_names"] = [
            getattr(g, "group_name", None) for g in state.pop("_groups")
        ]
        return state

    def __setstate__(self, state: dict) -> None:
        names = state.pop("_group_names")
        self.__dict__.update(state)
        self._mesh = _rank_tensor(state["_mesh"])
        by_name = {name: pg for pg, name in _world.pg_names.items()}
        found = [by_name.get(n, GroupMember.NON_GROUP_MEMBER) for n in names]
        self._groups = found if any(n in by_name for n in names) else []
        if is_initialized():
            self._rank = get_rank()
            self._coordinate = self._place()


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override=None,
) -> DeviceMesh:
    """A grid of all ranks, in their order.

    Args:
        device_type: of their tensors, "cpu".
        mesh_shape: how many ranks lie along each dimension.
        mesh_dim_names: of the dimensions.
        backend_override: backends by dimension's number or name.

    Raises:
        RuntimeError: names that do not fit, or more ranks than there are.

    On every rank:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    """
    named = mesh_dim_names if mesh_dim_names is not None else range(len(mesh_shape))
    if len(dict.fromkeys(named)) < len(named):
        raise RuntimeError(f"Each mesh_dim_name must be unique, got {mesh_dim_names}")
    if len(named) != len(mesh_shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length, got "
            f"{tuple(mesh_shape)} and {mesh_dim_names}"
        )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}."
        )
    names = mesh_dim_names or ()
    given = backend_override or {}
    override = tuple(
        _backend_pair(given.get(d, given.get(names[d]) if names else None))
        for d in range(len(mesh_shape))
    )
    count = 1
    for size in mesh_shape:
        count *= size
    ranks = taeda.arange(count, dtype=taeda.int32).view(*mesh_shape)
    return DeviceMesh(
        device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=override
    )


def _backend_pair(value) -> tuple:
    """(backend, options) of one of them, of both, or of None."""
    if value is None or isinstance(value, str):
        return value, None
    return tuple(value) if isinstance(value, tuple) else (None, value)
