"""Probability distributions: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
dist.transforms.Transform(cache_size=5)  # cache_size must be 0 or 1
dist.transforms.IndependentTransform(dist.transforms.ExpTransform(), 1)(T(1.0))\
  # Too few dimensions on input
dist.transforms.ReshapeTransform((2,), (3,))  # in_shape, out_shape have different
dist.transforms.ReshapeTransform((2, 2), (4,)).forward_shape((2,))\
  # Too few dimensions on input
dist.transforms.ReshapeTransform((2, 2), (4,)).forward_shape((3, 3))\
  # Shape mismatch: expected (3, 3) but got taeda.Size([2, 2])
dist.Binomial(T([1.0, 2.0]), T([0.5, 0.5])).entropy()\
  # Inhomogeneous total count not supported by `entropy`.
dist.Binomial(T([1.0, 2.0]), T([0.5, 0.5])).enumerate_support()\
  # Inhomogeneous total count not supported by `enumerate_support`.
dist.Categorical()  # Either `probs` or `logits` must be specified, but not both.
dist.Categorical(T(1.0))  # `probs` parameter must be at least one-dimensional.
dist.biject_to(dist.constraints.boolean)  # Cannot transform _Boolean constraints
dist.constraints.dependent.is_discrete  # .is_discrete cannot be determined statically
dist.constraints.dependent.check(ones(1))  # Cannot determine validity of dependent
dist.constraints.independent(dist.constraints.real, 2).check(ones(1))\
  # Expected value.dim() >= 2 but got 1
dist.Dirichlet(T(1.0))  # `concentration` parameter must be at least one-dimensional.
dist.Distribution().expand((1,))  # Distribution does not implement expand
dist.Distribution(validate_args=False).support  # Distribution does not implement
dist.Distribution(validate_args=False).rsample()  # Distribution does not implement
dist.Distribution(validate_args=False).log_prob(ones(1))\
  # Distribution does not implement log_prob
dist.Distribution(validate_args=False).cdf(ones(1))\
  # Distribution does not implement cdf
dist.Distribution(validate_args=False).icdf(ones(1))\
  # Distribution does not implement icdf
dist.Distribution(validate_args=False).mean  # Distribution does not implement mean
dist.Distribution(validate_args=False).variance  # Distribution does not implement
dist.Distribution(validate_args=False).mode  # does not implement mode
dist.Distribution(validate_args=False).entropy()  # Distribution does not implement
dist.Distribution(validate_args=False).enumerate_support()\
  # Distribution does not implement enumerate_support
dist.Distribution.set_default_validate_args(5)  # set_default_validate_args: not a bool:
dist.Normal(0.0, 1.0).log_prob(1)  # The value argument to log_prob must be a Tensor
dist.Dirichlet(ones(2)).log_prob(ones(3))  # taeda.Size([3]) vs taeda.Size([2]).
dist.Normal(ones(2), ones(2)).log_prob(ones(3))  # taeda.Size([3]) vs taeda.Size([2]).
dist.Normal(0.0, -1.0)  # of shape ()) of distribution Normal(loc: 0.0, scale: -1.0) to
dist.Normal('x', 1.0)  # Input arguments must all be instances of Number, torch.Tensor
made(dist.Normal, __init__=lambda s: None)().expand((2,))\
  # Subclass Made of Normal that defines a custom __init__ method must also define a
dist.Geometric(0.0)  # (Tensor of shape (1,)) of distribution Geometric(probs: 0.0) to
dist.Geometric()  # Either `probs` or `logits` must be specified, but not both.
dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Poisson(1.0))\
  # The cross KL-divergence between different exponential families cannot
dist.kl_divergence(dist.Cauchy(0.0, 1.0), dist.Poisson(1.0))\
  # No KL(p || q) is implemented for p type Cauchy and q type Poisson
dist.Wishart(5.0)  # Exactly one of covariance_matrix or precision_matrix or scale_tril
dist.Wishart(5.0, ones(2))  # scale_tril must be at least two-dimensional, with optional
dist.Wishart(1.0, m.eye(3))  # Value of df=1.0 expected to be greater than ndim - 1 = 2.
dist.LKJCholesky(1)  # Expected dim to be an integer greater than or equal to 2. Found
dist.ContinuousBernoulli(2.0, validate_args=True)  # The parameter probs has invalid
dist.CatTransform([dist.transforms.ExpTransform()], lengths=[1, 2])\
  # lengths (2) must match transforms (1)
dist.kl_divergence(dist.MultivariateNormal(m.zeros(2), m.eye(2)), \
dist.MultivariateNormal(m.zeros(3), m.eye(3)))\
  # KL-divergence between two Multivariate Normals with different event shapes
dist.LowRankMultivariateNormal(T(1.0), ones(1, 1), ones(1))\
  # loc must be at least one-dimensional.
dist.LowRankMultivariateNormal(ones(2), ones(3, 1), ones(2))\
  # cov_factor must be a batch of matrices with shape 2 x m
dist.LowRankMultivariateNormal(ones(2), ones(2, 1), ones(3))\
  # cov_diag must be a batch of vectors with shape taeda.Size([2])
dist.MixtureSameFamily(1, 2)  # The Mixture distribution needs to be an  instance of
dist.MixtureSameFamily(dist.Categorical(ones(2)), 2)\
  # The Component distribution need to be an instance of
dist.MixtureSameFamily(dist.Categorical(ones(2)), dist.Normal(ones(3), ones(3)))\
  # component` (2) does not equal `component_distribution.batch_shape[-1]` (3)
dist.MixtureSameFamily(dist.Categorical(ones(3, 2)), dist.Normal(ones(4, 2), ones(4, \
2)))\
  # `mixture_distribution.batch_shape` (taeda.Size([3])) is not compatible with
dist.Multinomial(ones(2), ones(2))  # inhomogeneous total_count is not supported
dist.MultivariateNormal(T(1.0), m.eye(1))  # loc must be at least one-dimensional.
dist.MultivariateNormal(ones(2))  # Exactly one of covariance_matrix or precision_matrix
dist.MultivariateNormal(ones(2), ones(2))  # covariance_matrix must be at least
dist.TransformedDistribution(dist.Normal(0.0, 1.0), 1)\
  # transforms must be a Transform or list, but was 1
dist.TransformedDistribution(dist.Normal(0.0, 1.0), [1])\
  # transforms must be a Transform or a list of Transforms
dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.StickBreakingTransform())\
  # base_distribution needs to have shape with size at least 1, but got
dist.CorrCholeskyTransform().forward_shape(())  # Too few dimensions on input
dist.CorrCholeskyTransform().forward_shape((4,))  # Input is not a flattened
dist.CorrCholeskyTransform().inverse_shape((2,))  # Too few dimensions on input
dist.CorrCholeskyTransform().inverse_shape((2, 3))  # Input is not square
dist.StickBreakingTransform().forward_shape(())  # Too few dimensions on input
dist.CatTransform([1])  # All elements of tseq must be Transform instances
dist.utils.tril_matrix_to_vec(ones(2, 2), 5)  # diag (5) provided is outside [-2, 1].
dist.Independent(dist.Normal(0.0, 1.0), 2)  # Expected reinterpreted_batch_ndims <=
dist.AbsTransform().sign  # AbsTransform does not implement sign
dist.AbsTransform().log_abs_det_jacobian(ones(1), ones(1))\
  # AbsTransform does not implement log_abs_det_jacobian
dist.register_kl(1, int)  # to be a Distribution subclass but got 1
"""

OWN = """
dist.utils.vec_to_tril_matrix(ones(4))  # ValueError: The size of last dimension is 4
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
