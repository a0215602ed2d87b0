// Distributions drawn one element at a time, in double precision, and rounded
// to T. What distribution_fill.h says of streams, locks and strides holds here.
// T: float, double, Half or BFloat16 (geometric: integers too).
#pragma once

#include <taeda/c10/core/generator.h>

#include <cstdint>

namespace taeda::native {

/// Rate `lambda`; inverse transform.
template <typename T>
void fill_exponential(T* out,
                      int64_t count,
                      int64_t stride,
                      double lambda,
                      CpuGeneratorImpl& generator);

/// Trials up to and including the first success of probability p.
template <typename T>
void fill_geometric(T* out,
                    int64_t count,
                    int64_t stride,
                    double p,
                    CpuGeneratorImpl& generator);

template <typename T>
void fill_cauchy(T* out,
                 int64_t count,
                 int64_t stride,
                 double median,
                 double sigma,
                 CpuGeneratorImpl& generator);

/// exp of a normal number; any size and layout draws one at a time.
template <typename T>
void fill_log_normal(T* out,
                     int64_t count,
                     int64_t stride,
                     double mean,
                     double std,
                     CpuGeneratorImpl& generator);

/// A rate per element. RuntimeError for a negative one.
template <typename T>
void fill_poisson(T* out,
                  int64_t stride,
                  const T* rate,
                  int64_t rate_stride,
                  int64_t count,
                  CpuGeneratorImpl& generator);

/// A number of trials and a probability per element.
template <typename T>
void fill_binomial(T* out,
                   int64_t stride,
                   const T* trials,
                   int64_t trials_stride,
                   const T* p,
                   int64_t p_stride,
                   int64_t count,
                   CpuGeneratorImpl& generator);

/// Gamma with scale 1 and a shape parameter per element.
template <typename T>
void fill_standard_gamma(T* out,
                         int64_t stride,
                         const T* alpha,
                         int64_t alpha_stride,
                         int64_t count,
                         CpuGeneratorImpl& generator);

/// `samples` categories, with replacement, from one row of weights.
/// RuntimeError for a negative, infinite or NaN weight, or a zero sum.
/// (One sample, and sampling without replacement, are made of other operators:
/// with q = fill_exponential(1), the argmax or the top k of weights / q.)
template <typename T>
void fill_multinomial(int64_t* out,
                      int64_t samples,
                      const T* weights,
                      int64_t weight_stride,
                      int64_t categories,
                      CpuGeneratorImpl& generator);

}  // namespace taeda::native
