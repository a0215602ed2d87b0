"""Where programs written for PyTorch find what private modules of this package define.

A class says the public module there (`torch.optim.lr_scheduler`), not the file here
(`optim._schedule_base`): files name classes so, and PyTorch reads them.
"""

from __future__ import annotations

__all__ = ["PLACES"]

# Public module -> private ones. All their public classes and functions are in it, or
# those that follow the colon.
_PRIVATE = {
    "": (
        "_autocast_names _batch_stats _buffers _compat.native_names _compile"
        " _fake_quantize _foreign_kernels _packed_linear _symbolic sparse._construct"
        " _higher_order_ops.cond:cond autograd.anomaly_mode:set_anomaly_enabled"
        " storage:from_file functional:istft,nonzero"
        " _determinism:are_deterministic_algorithms_enabled,set_warn_always,"
        "get_deterministic_debug_mode,get_float32_matmul_precision,"
        "is_deterministic_algorithms_warn_only_enabled,set_deterministic_debug_mode,"
        "set_float32_matmul_precision,set_flush_denormal,use_deterministic_algorithms"
        " _functions _seldom:AggregationType,ccol_indices_copy,col_indices_copy,"
        "crow_indices_copy,cudnn_is_acceptable,detach_copy,eig,fork,frobenius_norm,"
        "get_autocast_ipu_dtype,get_autocast_xla_dtype,indices_copy,init_num_threads,"
        "is_autocast_ipu_enabled,is_autocast_xla_enabled,is_distributed,"
        "is_vulkan_available,lstsq,nuclear_norm,resize_as_sparse_,row_indices_copy,"
        "set_autocast_ipu_dtype,set_autocast_ipu_enabled,set_autocast_xla_dtype,"
        "set_autocast_xla_enabled,slice_inverse,solve,sym_constrain_range,"
        "sym_constrain_range_for_size,sym_fresh_size,symeig,values_copy,wait"
    ),
    "autograd.graph": "autograd._mutation",
    "autograd.profiler": "autograd._nvprof",
    "compiler": (
        "compiler._stance compiler._explain compiler._marks compiler._nonstrict"
        " compiler._artifacts:load_cache_artifacts,save_cache_artifacts"
        " compiler._backends:get_default_backend,set_default_backend"
    ),
    "cpu.amp.autocast_mode": "cpu.amp:autocast",
    "cpu.amp.grad_scaler": "cpu.amp:GradScaler",
    "cuda": (
        "cuda._devices:can_device_access_peer,current_device,device,device_count,"
        "device_of,get_device_capability,get_device_name,get_device_properties,init,"
        "is_available,is_initialized,set_device,synchronize"
    ),
    "cuda.amp.autocast_mode": "cuda.amp:autocast,custom_bwd,custom_fwd",
    "cuda.amp.grad_scaler": "cuda.amp:GradScaler",
    "distributed": "distributed._debug",
    "distributed.distributed_c10d": (
        "_distributed:PrefixStore,Store distributed:is_gloo_available,"
        "is_mpi_available,is_nccl_available,is_torchelastic_launched"
        " distributed._collectives distributed._gloo:ProcessGroupGloo"
        " distributed._join:destroy_process_group,get_backend,get_backend_config,"
        "get_global_rank,get_group_rank,get_node_local_rank,get_pg_count,"
        "get_process_group_ranks,get_rank,get_world_size,init_process_group,"
        "is_initialized,new_group distributed._messages distributed._objects"
        " distributed._process_group distributed._subgroups distributed._types"
        " distributed._work:Work distributed._world"
    ),
    "distributed.fsdp": (
        "distributed.fsdp._fsdp_module distributed.fsdp._fully_shard"
        " distributed.fsdp._policies:CPUOffloadPolicy,DataParallelMeshDims,"
        "MixedPrecisionPolicy,OffloadPolicy"
    ),
    "distributed.rendezvous": "distributed._rendezvous",
    "distributed.rpc.api": "distributed.rpc._rref:RRef",
    "distributed.tensor": (
        "distributed.tensor._api:DTensor,distribute_tensor"
        " distributed.tensor._factories distributed.tensor._modules"
    ),
    "distributed.tensor.parallel.style": (
        "distributed.tensor.parallel._prepare distributed.tensor.parallel._style"
    ),
    "distributions.transforms": (
        "distributions._transform_base:CatTransform,ComposeTransform,"
        "IndependentTransform,StackTransform,Transform"
    ),
    "func": (
        "_functorch.derivatives:grad,grad_and_value,jvp,linearize,vjp"
        " _functorch.functionalize _functorch.jacobians _functorch.levels:debug_unwrap"
        " _functorch.modules _functorch.rearrange _functorch.vmap:vmap"
    ),
    "fx.experimental.symbolic_shapes": "fx.experimental._questions",
    "fx.graph": "fx._codegen:CodeGen,PythonCode",
    "jit": "futures:Future jit._types:isinstance",
    "library": ("_infer_schema _library_rules _user_operators:CustomOpDef,custom_op"),
    "masked": "masked._functions masked._moments",
    "multiprocessing": "multiprocessing._strategy",
    "nested": (
        "nested._construct:as_nested_tensor,masked_select,narrow,nested_tensor,"
        "nested_tensor_from_jagged nested._padding:to_padded_tensor"
    ),
    "nn.modules.module": (
        "nn.modules._hooks:register_module_backward_hook,"
        "register_module_forward_hook,register_module_forward_pre_hook,"
        "register_module_full_backward_hook,register_module_full_backward_pre_hook"
    ),
    "optim": "optim._adafactor optim._muon optim._stateless",
    "optim.lr_scheduler": (
        "optim._schedule_base:LRScheduler optim._schedule_cycles"
        " optim._schedule_groups optim._schedule_plateau"
    ),
    "profiler": "profiler._kinds:DeviceType,ProfilerActivity",
    "profiler.profiler": "profiler._kinds:ProfilerAction profiler._schedule",
    "serialization": (
        "_io.location:default_restore_location,location_tag,register_package"
    ),
    "storage": ":UntypedStorage",
    "sparse": "sparse._functions sparse._gradcheck sparse._invariants",
    "utils.checkpoint": "utils._recompute:CheckpointError,GraphExecGroup",
    "utils.cpp_extension": "utils._build_extension",
    "utils.tensorboard.writer": "utils.tensorboard._file",
    "xpu.streams": "xpu:Event,Stream",
}


def _table() -> dict[str, dict[str, str]]:
    """Private module -> name, or "" for all others -> public module."""
    table: dict[str, dict[str, str]] = {}
    for public, line in _PRIVATE.items():
        for entry in line.split():
            private, _, names = entry.partition(":")
            places = table.setdefault(private, {})
            places.update(dict.fromkeys(names.split(","), public))
    return table


PLACES = _table()
