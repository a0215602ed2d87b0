// Attention without the matrix of all scores: blocks of queries against all
// keys of a head.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/attention_scale.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/cpu/kernels/attention.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

namespace {

template <class A>
const AttentionKernels<A>& kernels() {
  const AttentionTable& table = TAEDA_ISA_TABLE(kAttentionTable);
  if constexpr (std::is_same_v<A, float>) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// [b, h, t, d] in the type of sums, rows dense.
struct Heads {
  Tensor tensor;
  int64_t batch, head, row;
  explicit Heads(const Tensor& t, ScalarType type) {
    bool dense = t.dtype() == type && t.strides()[3] == 1 && !t.is_conj() &&
                 !t.is_neg() && t.strides()[2] >= t.sizes()[3];
    tensor = dense ? t : contiguous_as(t, type);
    batch = tensor.strides()[0];
    head = tensor.strides()[1];
    row = std::max<int64_t>(tensor.strides()[2], 1);
  }
  template <class A>
  A* at(int64_t b, int64_t h) const {
    return const_cast<A*>(tensor.const_data<A>()) + b * batch + h * head;
  }
};

struct Shape {
  int64_t batch, heads, queries, keys, width, value_width;
  int64_t block;  // queries at a time
  double scale;
  bool causal;
  int64_t visible(int64_t query) const {
    return causal ? std::min(keys, query + 1) : keys;
  }
};

Shape shape_of(const Tensor& q,
               const Tensor& k,
               const Tensor& v,
               bool causal,
               std::optional<double> scale) {
  Shape s{q.sizes()[0],
          q.sizes()[1],
          q.sizes()[2],
          k.sizes()[2],
          q.sizes()[3],
          v.sizes()[3],
          0,
          0,
          causal};
  s.block = std::clamp<int64_t>(131072 / std::max<int64_t>(s.keys, 1), 16, 128);
  s.block = std::min(s.block, std::max<int64_t>(s.queries, 1));
  s.scale = attention_scale(scale, s.width);
  return s;
}

// The additive mask of one query, with strides that may be 0.
template <class A>
struct MaskRows {
  Tensor mask;
  int64_t strides[4] = {0, 0, 0, 0};
  MaskRows(const Tensor& given, ScalarType type) {
    if (!given.defined()) return;
    mask = cast(given, type);
    if (mask.is_neg() || mask.is_conj()) mask = contiguous(mask);
    for (int64_t d = 0; d < mask.dim(); ++d) {
      int64_t to = 4 - mask.dim() + d;
      strides[to] = mask.sizes()[d] == 1 ? 0 : mask.strides()[d];
    }
  }
  // Null without a mask; else keys in a row, copied when they are not.
  const A* row(int64_t b, int64_t h, int64_t q, int64_t n, A* buffer) const {
    if (!mask.defined()) return nullptr;
    const A* p =
        mask.const_data<A>() + b * strides[0] + h * strides[1] + q * strides[2];
    if (strides[3] == 1) return p;
    for (int64_t i = 0; i < n; ++i) buffer[i] = p[i * strides[3]];
    return buffer;
  }
};

// C = op(A) op(B) + beta C on dense rows.
template <class A>
void product(blas::Op ta,
             blas::Op tb,
             int64_t m,
             int64_t n,
             int64_t k,
             const A* a,
             int64_t lda,
             const A* b,
             int64_t ldb,
             A beta,
             A* c,
             int64_t ldc) {
  blas::gemm<A>(ta, tb, m, n, k, A(1), a, lda, b, ldb, beta, c, ldc);
}

constexpr blas::Op kPlain = blas::Op::kNone, kTurned = blas::Op::kTrans;

template <class A>
void attend(const Shape& s,
            const Heads& q,
            const Heads& k,
            const Heads& v,
            const MaskRows<A>& mask,
            const Heads& out,
            A* log_sums) {
  int64_t blocks = (s.queries + s.block - 1) / s.block;
  int64_t work = s.batch * s.heads * blocks;
  bool small = s.block * s.keys * (s.width + s.value_width) < 32768;
  parallel_for(0, work, small ? 4 : 1, [&](int64_t from, int64_t to) {
    std::vector<A> scores(static_cast<size_t>(s.block * s.keys));
    std::vector<A> row(mask.mask.defined() ? static_cast<size_t>(s.keys) : 0);
    for (int64_t i = from; i < to; ++i) {
      int64_t b = i / (s.heads * blocks), h = i / blocks % s.heads;
      int64_t first = i % blocks * s.block;
      int64_t count = std::min(s.block, s.queries - first);
      int64_t keys = s.visible(first + count - 1);
      product<A>(kPlain,
                 kTurned,
                 count,
                 keys,
                 s.width,
                 q.at<A>(b, h) + first * q.row,
                 q.row,
                 k.at<A>(b, h),
                 k.row,
                 A(0),
                 scores.data(),
                 keys);
      A inverse[128];
      for (int64_t r = 0; r < count; ++r) {
        int64_t n = s.visible(first + r);
        const A* m = mask.row(b, h, first + r, n, row.data());
        log_sums[(b * s.heads + h) * s.queries + first + r] =
            kernels<A>().softmax(scores.data() + r * keys,
                                 m,
                                 static_cast<A>(s.scale),
                                 n,
                                 keys,
                                 &inverse[r]);
      }
      A* y = out.at<A>(b, h) + first * out.row;
      product<A>(kPlain,
                 kPlain,
                 count,
                 s.value_width,
                 keys,
                 scores.data(),
                 keys,
                 v.at<A>(b, h),
                 v.row,
                 A(0),
                 y,
                 out.row);
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t d = 0; d < s.value_width; ++d)
          y[r * out.row + d] *= inverse[r];
      }
    }
  });
}

// The gradients of one head after the other, a block of queries at a time.
template <class A>
struct AttendBackward {
  const Shape& s;
  const Heads &dy, &q, &k, &v;
  const MaskRows<A>& mask;
  const Heads &dq, &dk, &dv;

  void run() const {
    parallel_for(0, s.batch * s.heads, 1, [&](int64_t from, int64_t to) {
      size_t size = static_cast<size_t>(s.block * s.keys);
      std::vector<A> probs(size), grads(size);
      std::vector<A> row(mask.mask.defined() ? static_cast<size_t>(s.keys) : 0);
      for (int64_t i = from; i < to; ++i) {
        for (int64_t first = 0; first < s.queries; first += s.block) {
          block(i, first, probs.data(), grads.data(), row.data());
        }
      }
    });
  }

  void block(int64_t i, int64_t first, A* probs, A* grads, A* row) const {
    int64_t b = i / s.heads, h = i % s.heads;
    int64_t count = std::min(s.block, s.queries - first);
    int64_t keys = s.visible(first + count - 1);
    const A* qs = q.at<A>(b, h) + first * q.row;
    const A* gs = dy.at<A>(b, h) + first * dy.row;
    const A* ks = k.at<A>(b, h);
    times(kPlain, kTurned, count, keys, s.width, qs, q.row, ks, k.row, probs);
    times(kPlain,
          kTurned,
          count,
          keys,
          s.value_width,
          gs,
          dy.row,
          v.at<A>(b, h),
          v.row,
          grads);
    A scale = static_cast<A>(s.scale);
    for (int64_t r = 0; r < count; ++r) {
      int64_t n = s.visible(first + r);
      const A* m = mask.row(b, h, first + r, n, row);
      A* p = probs + r * keys;
      A* g = grads + r * keys;
      // Again from the scores, not by the saved sums: a lone key's weight is
      // then 1 and its gradient 0, without rounding.
      A inverse;
      kernels<A>().softmax(p, m, scale, n, keys, &inverse);
      for (int64_t j = 0; j < n; ++j) p[j] *= inverse;
      // Not dy . out: a 16-bit out would cost most digits of the difference.
      A delta = kernels<A>().dot(p, g, keys);
      kernels<A>().grads(g, p, delta, scale, keys);
    }
    add(keys, s.value_width, count, probs, keys, gs, dy.row, dv, b, h);
    add(keys, s.width, count, grads, keys, qs, q.row, dk, b, h);
    product<A>(kPlain,
               kPlain,
               count,
               s.width,
               keys,
               grads,
               keys,
               ks,
               k.row,
               A(0),
               dq.at<A>(b, h) + first * dq.row,
               dq.row);
  }

  void times(blas::Op ta,
             blas::Op tb,
             int64_t m,
             int64_t n,
             int64_t inner,
             const A* a,
             int64_t lda,
             const A* c,
             int64_t ldc,
             A* out) const {
    product<A>(ta, tb, m, n, inner, a, lda, c, ldc, A(0), out, n);
  }

  // to += x^T y.
  void add(int64_t m,
           int64_t n,
           int64_t inner,
           const A* x,
           int64_t ldx,
           const A* y,
           int64_t ldy,
           const Heads& to,
           int64_t b,
           int64_t h) const {
    product<A>(kTurned,
               kPlain,
               m,
               n,
               inner,
               x,
               ldx,
               y,
               ldy,
               A(1),
               to.at<A>(b, h),
               to.row);
  }
};

// `out` itself where it has the type of sums.
Tensor summed_in(const Tensor& out, ScalarType type) {
  if (out.dtype() == type) return out;
  return make_tensor_strided(
      "scaled_dot_product_attention", out.sizes(), out.strides(), type);
}
void finish(const Tensor& computed, const Tensor& out) {
  if (!computed.is_same(out)) copy_into(out, computed);
}

template <class F>
void visit_sum_type(ScalarType t, F&& f) {
  t == kDouble ? f(double{}) : f(float{});
}

}  // namespace

void _scaled_dot_product_flash_attention_for_cpu_cpu(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    double,
    bool is_causal,
    const OptionalTensor& attn_mask,
    std::optional<double> scale,
    const Tensor& output,
    const Tensor& logsumexp) {
  if (logsumexp.numel() == 0) return;
  Shape s = shape_of(query, key, value, is_causal, scale);
  ScalarType type = logsumexp.dtype();
  Tensor out = summed_in(output, type);
  Heads q(query, type), k(key, type), v(value, type), y(out, type);
  visit_sum_type(type, [&](auto tag) {
    using A = decltype(tag);
    MaskRows<A> mask(or_undefined(attn_mask), type);
    attend<A>(s, q, k, v, mask, y, logsumexp.mutable_data<A>());
  });
  finish(out, output);
}

void _scaled_dot_product_flash_attention_for_cpu_backward_cpu(
    const Tensor& grad_out,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor&,
    const Tensor& logsumexp,
    double,
    bool is_causal,
    const OptionalTensor& attn_mask,
    std::optional<double> scale,
    const Tensor& grad_query,
    const Tensor& grad_key,
    const Tensor& grad_value) {
  Shape s = shape_of(query, key, value, is_causal, scale);
  ScalarType type = compute_type(query.dtype());
  Tensor dq = summed_in(grad_query, type), dk = summed_in(grad_key, type);
  Tensor dv = summed_in(grad_value, type);
  for (const Tensor* t : {&dq, &dk, &dv}) fill_with(*t, int64_t{0});
  if (logsumexp.numel() > 0 && s.keys > 0) {
    Heads q(query, type), k(key, type), v(value, type);
    Heads g(grad_out, type), gq(dq, type), gk(dk, type), gv(dv, type);
    visit_sum_type(type, [&](auto tag) {
      using A = decltype(tag);
      MaskRows<A> mask(or_undefined(attn_mask), type);
      AttendBackward<A>{s, g, q, k, v, mask, gq, gk, gv}.run();
    });
  }
  finish(dq, grad_query);
  finish(dk, grad_key);
  finish(dv, grad_value);
}

}  // namespace taeda::native
