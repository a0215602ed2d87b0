"""Operators that PyTorch has for the kernels of one library or device.

Those of cuDNN, MIOpen and oneDNN's own layout refuse, as PyTorch's build without these
does for the tensors that there are here; `mkldnn_convolution` takes ordinary tensors.
"""

from __future__ import annotations

from taeda import _C
from taeda._compat.unmade import refusing_function

_POOL = "input,kernel_size,stride=(),padding=0,dilation=1,ceil_mode=False"
_CONV = "padding,stride,dilation,groups,benchmark,deterministic"
_TRANSPOSED = "padding,output_padding,stride,dilation,groups,benchmark,deterministic"
_FUSED = "bias,stride,padding,dilation,groups"
_NORM = (
    "input,weight,bias,running_mean,running_var,training,exponential_average_factor,"
    "epsilon"
)
# Operator -> its parameters.
_PARAMETERS = {
    "cudnn_affine_grid_generator": "theta,N,C,H,W",
    "cudnn_batch_norm": f"{_NORM},*,out=None",
    "cudnn_convolution": f"input,weight,{_CONV},allow_tf32,*,out=None",
    "cudnn_convolution_add_relu": f"input,weight,z,alpha,{_FUSED}",
    "cudnn_convolution_relu": f"input,weight,{_FUSED}",
    "cudnn_convolution_transpose": f"input,weight,{_TRANSPOSED},allow_tf32",
    "cudnn_grid_sampler": "input,grid",
    "miopen_batch_norm": _NORM,
    "miopen_convolution": f"input,weight,bias,{_CONV}",
    "miopen_convolution_add_relu": f"input,weight,z,alpha,{_FUSED}",
    "miopen_convolution_relu": f"input,weight,{_FUSED}",
    "miopen_convolution_transpose": f"input,weight,bias,{_TRANSPOSED}",
    "miopen_ctc_loss": (
        "log_probs,targets,input_lengths,target_lengths,blank,deterministic,"
        "zero_infinity"
    ),
    "miopen_depthwise_convolution": f"input,weight,bias,{_CONV}",
    "miopen_rnn": (
        "input,weight,weight_stride0,hx,cx,mode,hidden_size,num_layers,batch_first,"
        "dropout,train,bidirectional,batch_sizes,dropout_state"
    ),
    "mkldnn_adaptive_avg_pool2d": "input,output_size,*,out=None",
    "mkldnn_linear_backward_weights": "grad_output,input,weight,bias_defined",
    "mkldnn_max_pool2d": _POOL,
    "mkldnn_max_pool3d": _POOL,
    "native_norm": "input,p=2,dim=(),keepdim=False,dtype=None",  # of sparse GPU tensors
}
__all__ = [*_PARAMETERS, "mkldnn_convolution"]


def _no_kernel(name: str):
    def fail():
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: this "
            "build of taeda does not have that library's kernels or layout"
        )

    return fail


_DOC = "Of another library's kernels, which are not there.\n\nRaises:\n    {}"
globals().update(
    (name, refusing_function(name, text, _no_kernel(name), _DOC.format(error)))
    for error in ("NotImplementedError: always.",)
    for name, text in _PARAMETERS.items()
)


def mkldnn_convolution(input, weight, bias, padding, stride, dilation, groups):
    """The convolution of ordinary tensors, which oneDNN computes where it has it.

    Args:
        input (Tensor): (N, C, *).
        weight (Tensor): (O, C / groups, *).
        bias (Tensor or None): (O).
        padding, stride, dilation (ints): by dim.
        groups (int): of channels that are convolved apart.

    Example:
        >>> x, w = taeda.ones(1, 1, 2, 2), taeda.ones(1, 1, 2, 2)
        >>> taeda.mkldnn_convolution(x, w, None, (0, 0), (1, 1), (1, 1), 1).item()
        4.0
    """
    convolution = _C._VariableFunctions.convolution
    still = (0,) * (input.dim() - 2)
    return convolution(
        input, weight, bias, stride, padding, dilation, False, still, groups
    )
