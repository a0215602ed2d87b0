"""Functions of neural networks, as in torch.nn.functional.

The functions live in private files that are read when a name of theirs is first
used; natives whose signature is the public one are shown as they are.
"""

from __future__ import annotations

_FILES = {
    "_activation": (
        "threshold threshold_ relu relu_ glu hardtanh hardtanh_ relu6 elu elu_ selu"
        " selu_ celu celu_ leaky_relu leaky_relu_ prelu rrelu rrelu_ logsigmoid gelu"
        " hardshrink tanhshrink softsign softplus softmin softmax gumbel_softmax"
        " log_softmax softshrink tanh sigmoid hardsigmoid silu mish hardswish"
    ),
    "_attention": "scaled_dot_product_attention multi_head_attention_forward",
    "_distance": "pairwise_distance pdist cosine_similarity normalize",
    "_dropout": (
        "dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout"
    ),
    "_linear": (
        "linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d"
        " conv_transpose3d conv_tbc grouped_mm scaled_mm scaled_grouped_mm ScalingType"
        " SwizzleType"
    ),
    "_loss": (
        "nll_loss poisson_nll_loss gaussian_nll_loss kl_div cross_entropy ctc_loss"
        " binary_cross_entropy binary_cross_entropy_with_logits smooth_l1_loss"
        " huber_loss l1_loss mse_loss linear_cross_entropy"
    ),
    "_margin_loss": (
        "margin_ranking_loss hinge_embedding_loss multilabel_margin_loss"
        " soft_margin_loss multilabel_soft_margin_loss cosine_embedding_loss"
        " multi_margin_loss triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "_norm": (
        "batch_norm instance_norm layer_norm rms_norm group_norm local_response_norm"
    ),
    "_overrides": (
        "has_torch_function has_torch_function_unary has_torch_function_variadic"
        " handle_torch_function boolean_dispatch BroadcastingList1 BroadcastingList2"
        " BroadcastingList3 assert_int_or_pair"
    ),
    "_pooling": (
        "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d"
        " adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices"
        " adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d"
        " adaptive_max_pool3d_with_indices max_pool1d max_pool1d_with_indices"
        " max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices"
        " max_unpool1d max_unpool2d max_unpool3d lp_pool1d lp_pool2d lp_pool3d"
        " fractional_max_pool2d fractional_max_pool2d_with_indices"
        " fractional_max_pool3d fractional_max_pool3d_with_indices"
    ),
    "_sparse": "embedding embedding_bag one_hot",
    "_vision": (
        "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle upsample"
        " interpolate upsample_nearest upsample_bilinear grid_sample affine_grid pad"
        " unfold fold"
    ),
}
_WHERE = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = sorted(_WHERE)


def __getattr__(name: str):
    if name == "torch":  # as PyTorch's module imports its library
        import taeda

        return taeda
    if name == "grad":
        from taeda.nn import grad

        return grad
    if name == "_Reduction":  # which losses of other packages read
        from taeda.nn import _reduction

        return _reduction
    file = _WHERE.get(name) or _PRIVATE.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = vars(import_module(f"{__name__}.{file}"))
    if name in _PRIVATE:
        return found[name]
    space = globals()
    for shown in _FILES[file].split():
        space.setdefault(shown, found[shown])
    return space[name]


# Helpers of torch's file that other packages reach for.
_PRIVATE = {
    "_canonical_mask": "_attention",
    "_none_or_dtype": "_attention",
    "_in_projection": "_attention",
    "_in_projection_packed": "_attention",
    "_unpool_output_size": "_pooling",
    "_get_softmax_dim": "_activation",
    "_threshold": "_activation",
    "_verify_batch_size": "_norm",
}


def __dir__():
    return [*globals(), *__all__]
