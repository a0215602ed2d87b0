"""The messages of TensorBoard's event files, as classes of protobuf's Python runtime.

Declared in code by name, number and type of each field, the public facts of the
format; enumerations are declared as int32, which is the same on the wire. They live in
a pool of their own, so that a process may import TensorBoard beside this.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    struct_pb2,
)

_PACKAGE = "taeda.events"

# Message: its fields as "name=number:type", where `*` marks repeated ones, `^NAME`
# members of a oneof, and a capital a message of this table.
_TABLE = {
    "Event": "wall_time=1:double step=2:int64 file_version=3:string^what "
    "graph_def=4:bytes^what summary=5:Summary^what session_log=7:SessionLog^what "
    "tagged_run_metadata=8:TaggedRun^what source_metadata=10:SourceMetadata",
    "TaggedRun": "tag=1:string run_metadata=2:bytes",
    "SourceMetadata": "writer=1:string",
    "SessionLog": "status=1:int32 checkpoint_path=2:string msg=3:string",
    "Summary": "value=1:Value*",
    "Value": "tag=1:string simple_value=2:float^value image=4:Image^value "
    "histo=5:Histogram^value audio=6:Audio^value node_name=7:string "
    "tensor=8:Tensor^value metadata=9:Metadata",
    "Image": "height=1:int32 width=2:int32 colorspace=3:int32 "
    "encoded_image_string=4:bytes",
    "Audio": "sample_rate=1:float num_channels=2:int64 length_frames=3:int64 "
    "encoded_audio_string=4:bytes content_type=5:string",
    "Histogram": "min=1:double max=2:double num=3:double sum=4:double "
    "sum_squares=5:double bucket_limit=6:double* bucket=7:double*",
    "Metadata": "plugin_data=1:PluginData display_name=2:string "
    "summary_description=3:string data_class=4:int32",
    "PluginData": "plugin_name=1:string content=2:bytes",
    "Tensor": "dtype=1:int32 tensor_shape=2:Shape tensor_content=4:bytes "
    "float_val=5:float* double_val=6:double* string_val=8:bytes*",
    "Shape": "dim=2:Dim*",
    "Dim": "size=1:int64",
    # Plugin "hparams".
    "HParams": "version=1:int32 experiment=2:Experiment^data "
    "session_start_info=3:SessionStart^data session_end_info=4:SessionEnd^data",
    "Experiment": "hparam_infos=4:HParamInfo* metric_infos=5:MetricInfo*",
    "HParamInfo": "name=1:string type=4:int32 domain_discrete=5:@ListValue",
    "MetricInfo": "name=1:MetricName",
    "MetricName": "group=1:string tag=2:string",
    "SessionStart": "hparams=1:HParamEntry*",
    # A map on the wire: repeated pairs.
    "HParamEntry": "key=1:string value=2:@Value",
    "SessionEnd": "status=1:int32",
    # Plugins "pr_curves" and "custom_scalars".
    "PrCurve": "version=1:int32 num_thresholds=2:uint32",
    "Layout": "version=1:int32 category=2:Category*",
    "Category": "title=1:string chart=2:Chart*",
    "Chart": "title=1:string multiline=2:Multiline^content margin=3:Margin^content",
    "Multiline": "tag=1:string*",
    "Margin": "series=1:Series*",
    "Series": "value=1:string lower=2:string upper=3:string",
}


def _declare(message: Any, field: str) -> None:
    """Adds one field of the table's notation to a message's description."""
    name, _, rest = field.partition("=")
    rest, _, group = rest.partition("^")
    number, _, kind = rest.rstrip("*").partition(":")
    added = message.field.add(name=name, number=int(number))
    added.label = added.LABEL_REPEATED if rest.endswith("*") else added.LABEL_OPTIONAL
    if kind.startswith("@"):
        added.type = added.TYPE_MESSAGE
        added.type_name = f".google.protobuf.{kind[1:]}"
    elif kind[0].isupper():
        added.type = added.TYPE_MESSAGE
        added.type_name = f".{_PACKAGE}.{kind}"
    else:
        added.type = getattr(added, f"TYPE_{kind.upper()}")
    if group:
        groups = [oneof.name for oneof in message.oneof_decl]
        if group not in groups:
            message.oneof_decl.add(name=group)
            groups.append(group)
        added.oneof_index = groups.index(group)


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="taeda/events.proto", package=_PACKAGE, syntax="proto3"
    )
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    for name, fields in _TABLE.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            _declare(message, field)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    find = pool.FindMessageTypeByName
    made = {n: message_factory.GetMessageClass(find(f"{_PACKAGE}.{n}")) for n in _TABLE}
    made["ListValue"] = message_factory.GetMessageClass(
        find("google.protobuf.ListValue")
    )
    return made


# Never changed after import.
_CLASSES = _classes()


def __getattr__(name: str) -> Any:
    """The message classes, by their name in the table (and `ListValue`)."""
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
