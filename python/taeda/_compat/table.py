"""The placeholders, by module: what packages name while they are imported.

    Name           a class: isinstance answers False, making one is refused
    Name(Base)     the same with a base class, for packages that derive from it
    name()         a function that refuses
    Name=module    the same object as that module's

A module that is only here is made of its line alone; an empty line makes an empty
module. Overloads of operators stand under "ops:NAMESPACE". The packages are listed in
test/python/package/test_placeholders.py.

DEVICES has the modules of devices that this build does not use: what they are, and the
names of `device.py`, or of `unmade.CLASSES`, that their module has.

    name           as `device.py` defines it
    name=other     the same object under another name
    name!          refuses, as PyTorch's does in a build without that device
    name!part      the same, where PyTorch's says which of its parts needs the device
"""

from __future__ import annotations

__all__ = ["DEVICES", "TABLE"]

TABLE = {
    "": "qint32 qint8 quint4x2 quint8",
    "_C": "Graph Value",
    "ao.quantization": "DeQuantStub FakeQuantizeBase ObserverBase QConfig QuantStub"
    " convert() fuse_modules() fuse_modules_qat() get_default_qat_qconfig()"
    " prepare() prepare_qat()",
    "jit": "_get_trace_graph()",
    "onnx": "ONNXProgram",
    "onnx.symbolic_opset11": "",
    "ops:aten": "_pin_memory.default()",
    "autograd.profiler_legacy": "profile",
    "utils.bundled_inputs": "InflatableArg bundle_inputs()"
    " augment_model_with_bundled_inputs()"
    " augment_many_model_functions_with_bundled_inputs()",
    "utils.hipify.hipify_python": "hipify()",
    "utils.mobile_optimizer": "LintCode generate_mobile_module_lints()"
    " optimize_for_mobile()",
}

DEVICES = {
    "mps": (
        "Apple's GPUs",
        "is_available device_count manual_seed empty_cache current_allocated_memory"
        " driver_allocated_memory=current_allocated_memory"
        " recommended_max_memory=current_allocated_memory"
        " synchronize! get_rng_state! set_rng_state! seed! Event compile_shader"
        " load_metallib set_per_process_memory_fraction",
    ),
    "mps.profiler": (
        "Marks for Apple's tools",
        "start stop profile is_metal_capture_enabled is_capturing_metal",
    ),
    "mtia": (
        "Meta's accelerators",
        "is_available is_initialized device_count init! initial_seed! get_rng_state!"
        " synchronize!getCurrentDevice current_device!getCurrentDevice"
        " current_stream!getCurrentDevice default_stream!getCurrentDevice"
        " get_device_capability!getCurrentDevice"
        " get_device_properties!getCurrentDevice set_rng_state!getCurrentDevice"
        " set_device!setCurrentDevice set_stream!setCurrentStream"
        " snapshot!memorySnapshot empty_cache!emptyCache"
        " attach_out_of_memory_observer!attachOutOfMemoryObserver"
        " graph_pool_handle!graphPoolHandle memory_stats memory_allocated"
        " max_memory_allocated=memory_allocated reset_peak_memory_stats"
        " record_memory_history get_rng_state_all set_rng_state_all manual_seed"
        " manual_seed_all=manual_seed seed seed_all=seed device stream StreamContext"
        " is_bf16_supported MTIAGraph graph",
    ),
    "mtia.memory": (
        "What is used of their memory",
        "memory_stats memory_allocated max_memory_allocated reset_peak_memory_stats",
    ),
    "mtia.mtia_graph": ("Recorded work", "MTIAGraph graph graph_pool_handle"),
    "xpu": (
        "Intel's GPUs",
        "is_available is_initialized is_bf16_supported device_count empty_cache"
        " manual_seed manual_seed_all=manual_seed memory_allocated"
        " memory_reserved=memory_allocated max_memory_allocated=memory_allocated"
        " memory_stats memory_stats_as_nested_dict=memory_stats get_arch_list"
        " get_gencode_flags is_tf32_supported device"
        " max_memory_reserved=memory_allocated reset_peak_memory_stats"
        " get_rng_state_all set_rng_state_all Stream Event current_device!"
        " set_device! synchronize! get_device_name! get_device_properties!"
        " get_device_capability! mem_get_info! get_rng_state! set_rng_state!"
        " current_stream! set_stream! get_stream_from_external! initial_seed!"
        " can_device_access_peer! clock_rate! device_memory_used! memory_usage!"
        " power_draw! temperature! utilization! memory_snapshot! graph_pool_handle!"
        " get_per_process_memory_fraction! set_per_process_memory_fraction!"
        " reset_accumulated_memory_stats! make_graphed_callables! init! MemPool"
        " XPUGraph graph XPUPluggableAllocator change_current_allocator"
        " default_generators device_of is_current_stream_capturing seed seed_all=seed"
        " stream StreamContext use_mem_pool",
    ),
    "xpu.graphs": (
        "Recorded work",
        "XPUGraph graph graph_pool_handle is_current_stream_capturing"
        " make_graphed_callables",
    ),
    "xpu.memory": (
        "What is used of their memory",
        "MemPool XPUPluggableAllocator change_current_allocator empty_cache"
        " get_per_process_memory_fraction max_memory_allocated max_memory_reserved"
        " mem_get_info memory_allocated memory_reserved memory_snapshot memory_stats"
        " memory_stats_as_nested_dict reset_accumulated_memory_stats"
        " reset_peak_memory_stats set_per_process_memory_fraction use_mem_pool",
    ),
    "xpu.random": (
        "Their random numbers",
        "get_rng_state get_rng_state_all set_rng_state set_rng_state_all manual_seed"
        " manual_seed_all seed seed_all initial_seed",
    ),
    "xpu.streams": ("Queues of work on Intel's GPUs", "Event Stream"),
}
