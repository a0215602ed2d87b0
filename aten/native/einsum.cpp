// einsum: operands become batches of matrices, contracted pair by pair.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/einsum.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace taeda::native {

namespace {

constexpr int kEllipsis = -1;
constexpr int kLetters = 52;

int letter_index(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
char letter_of(int i) {
  return static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26);
}

using Labels = std::vector<int>;  // letters, kEllipsis for "..."

// The subscripts of one operand, or of the output.
Labels parse_labels(std::string_view text, const std::string& where) {
  Labels labels;
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      TAEDA_CHECK(!ellipsis,
                  "einsum(): found '.' for ",
                  where,
                  " for which an ellipsis was already found");
      TAEDA_CHECK(text.substr(i, 3) == "...",
                  "einsum(): found '.' for ",
                  where,
                  " that is not part of any ellipsis");
      labels.push_back(kEllipsis);
      ellipsis = true;
      i += 2;
      continue;
    }
    TAEDA_CHECK(std::isalpha(static_cast<unsigned char>(c)),
                "einsum(): invalid subscript given at index ",
                static_cast<int64_t>(i),
                " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(letter_index(c));
  }
  return labels;
}

struct Equation {
  std::vector<Labels> inputs;
  std::optional<Labels> output;
};

Equation parse(std::string_view text, size_t operands) {
  Equation e;
  size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  for (size_t at = 0;;) {
    size_t comma = left.find(',', at);
    std::string_view part = left.substr(at, comma - at);
    e.inputs.push_back(
        parse_labels(part, str_cat("operand ", e.inputs.size())));
    if (comma == std::string_view::npos) break;
    at = comma + 1;
  }
  TAEDA_CHECK(e.inputs.size() >= operands,
              "einsum(): more operands were provided than specified in the "
              "equation");
  TAEDA_CHECK(e.inputs.size() <= operands,
              "einsum(): fewer operands were provided than specified in the "
              "equation");
  if (arrow != std::string_view::npos) {
    e.output = parse_labels(text.substr(arrow + 2), "the output");
  }
  return e;
}

// Where every label stands among the dims that all operands are brought to:
// output labels first, then those that are summed over.
struct Frame {
  std::array<int64_t, kLetters> place;
  int64_t ellipsis_place = 0, ellipsis_rank = 0;
  int64_t out_rank = 0, rank = 0;
  Frame() { place.fill(-1); }
};

int64_t ellipsis_rank(const Equation& e, TensorList operands) {
  int64_t rank = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Labels& labels = e.inputs[i];
    bool has = std::count(labels.begin(), labels.end(), kEllipsis) > 0;
    int64_t named = static_cast<int64_t>(labels.size()) - has;
    int64_t dims = operands[i].dim();
    TAEDA_CHECK(has ? named <= dims : named == dims,
                "einsum(): the number of subscripts in the equation (",
                named,
                has ? ") is more than the number of dimensions ("
                    : ") does not match the number of dimensions (",
                dims,
                ") for operand ",
                static_cast<int64_t>(i),
                has ? "" : " and no ellipsis was given");
    if (has) rank = std::max(rank, dims - named);
  }
  return rank;
}

Frame make_frame(const Equation& e, TensorList operands) {
  Frame f;
  f.ellipsis_rank = ellipsis_rank(e, operands);
  std::array<int, kLetters> uses{};
  for (const Labels& labels : e.inputs) {
    for (int l : labels) {
      if (l != kEllipsis) ++uses[static_cast<size_t>(l)];
    }
  }
  int64_t next = 0;
  bool ellipsis_out = false;
  if (e.output) {
    for (int l : *e.output) {
      if (l == kEllipsis) {
        f.ellipsis_place = next;
        next += f.ellipsis_rank;
        ellipsis_out = true;
        continue;
      }
      size_t at = static_cast<size_t>(l);
      TAEDA_CHECK(f.place[at] < 0,
                  "einsum(): output subscript ",
                  letter_of(l),
                  " appears more than once in the output");
      TAEDA_CHECK(uses[at] > 0,
                  "einsum(): output subscript ",
                  letter_of(l),
                  " does not appear in the equation for any input operand");
      f.place[at] = next++;
    }
  } else {
    // The ellipsis, then the letters that occur once, in order.
    next = f.ellipsis_rank;
    ellipsis_out = true;
    for (size_t l = 0; l < kLetters; ++l) {
      if (uses[l] == 1) f.place[l] = next++;
    }
  }
  f.out_rank = next;
  if (!ellipsis_out) {
    f.ellipsis_place = next;
    next += f.ellipsis_rank;
  }
  for (size_t l = 0; l < kLetters; ++l) {
    if (uses[l] > 0 && f.place[l] < 0) f.place[l] = next++;
  }
  f.rank = next;
  return f;
}

// The operand with the frame's dims: diagonals of repeated labels, size 1 for
// labels that it does not have.
Tensor framed(const Tensor& operand,
              const Labels& labels,
              const Frame& f,
              size_t number) {
  Tensor t = operand;
  std::vector<int64_t> places;  // of t's dims
  for (int l : labels) {
    if (l == kEllipsis) {
      int64_t own = operand.dim() - static_cast<int64_t>(labels.size()) + 1;
      for (int64_t i = 0; i < own; ++i) {
        places.push_back(f.ellipsis_place + f.ellipsis_rank - own + i);
      }
      continue;
    }
    int64_t place = f.place[static_cast<size_t>(l)];
    auto before = std::find(places.begin(), places.end(), place);
    int64_t dim = static_cast<int64_t>(places.size());
    if (before == places.end()) {
      places.push_back(place);
      continue;
    }
    int64_t first = before - places.begin();
    SymInt one = symbolic_sizes(t)[first], other = symbolic_sizes(t)[dim];
    TAEDA_CHECK(one == other,
                "einsum(): subscript ",
                letter_of(l),
                " is repeated for operand ",
                static_cast<int64_t>(number),
                " but the sizes don't match, ",
                other,
                " != ",
                one);
    // The diagonal becomes the last dim; it is put where the label was.
    t = ops::diagonal(t, int64_t{0}, first, dim);
    DimVector order;
    for (int64_t d = 0; d + 1 < t.dim(); ++d) order.push_back(d);
    order.insert(order.begin() + first, t.dim() - 1);
    t = ops::permute(t, order);
  }
  DimVector order(places.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return places[static_cast<size_t>(a)] < places[static_cast<size_t>(b)];
  });
  bool sorted = std::is_sorted(order.begin(), order.end());
  if (!sorted) t = ops::permute(t, order);
  std::sort(places.begin(), places.end());
  for (int64_t d = 0; d < f.rank; ++d) {
    if (!std::binary_search(places.begin(), places.end(), d)) {
      t = ops::unsqueeze(t, d);
    }
  }
  return t;
}

void check_broadcast(const std::vector<Tensor>& operands,
                     const std::vector<Labels>& labels,
                     const Frame& f) {
  for (int64_t d = 0; d < f.rank; ++d) {
    SymInt size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      SymInt own = symbolic_sizes(operands[i])[d];
      if (own == 1) continue;
      std::string name = "...";
      for (size_t l = 0; l < kLetters; ++l) {
        if (f.place[l] == d) name = letter_of(static_cast<int>(l));
      }
      TAEDA_CHECK(size == 1 || size == own,
                  "einsum(): subscript ",
                  name,
                  " has size ",
                  own,
                  " for operand ",
                  static_cast<int64_t>(i),
                  " which does not broadcast with previously seen size ",
                  size);
      size = own;
    }
  }
  (void)labels;
}

Tensor sum_over(const Tensor& t, const DimVector& dims) {
  return dims.empty() ? t : ops::sum(t, IntArrayRef(dims), true);
}

// The product of two framed operands, summed over `summed`, which keep size 1.
Tensor contract(Tensor a, Tensor b, const std::vector<bool>& summed) {
  DimVector both, left, right, inner, only_a, only_b;
  int64_t rank = a.dim();
  for (int64_t d = 0; d < rank; ++d) {
    const SymInt &x = symbolic_sizes(a)[d], &y = symbolic_sizes(b)[d];
    bool sum = summed[static_cast<size_t>(d)];
    if (sum && x != 1 && y != 1) {
      inner.push_back(d);
    } else if (sum && x != 1) {
      only_a.push_back(d);
    } else if (sum && y != 1) {
      only_b.push_back(d);
    } else if (x != 1 && y != 1) {
      both.push_back(d);
    } else if (y != 1) {
      right.push_back(d);
    } else {
      left.push_back(d);  // size 1 in both counts as the left one's
    }
  }
  a = sum_over(a, only_a);
  b = sum_over(b, only_b);
  if (inner.empty()) return ops::mul(a, b);
  auto product = [](const Tensor& t, const DimVector& dims) {
    SymInt n = 1;
    for (int64_t d : dims) n *= symbolic_sizes(t)[d];
    return n;
  };
  auto arranged = [&](const Tensor& t,
                      const DimVector& first,
                      const DimVector& second,
                      const DimVector& rest) {
    DimVector order(both);
    for (int64_t d : first) order.push_back(d);
    for (int64_t d : second) order.push_back(d);
    for (int64_t d : rest) order.push_back(d);
    for (int64_t d : only_a) order.push_back(d);
    for (int64_t d : only_b) order.push_back(d);
    Dims<SymInt> shape{product(t, both), product(t, first), product(t, second)};
    return reshape_sized(ops::permute(t, order), shape);
  };
  Dims<SymInt> sizes(static_cast<size_t>(rank), SymInt(1));
  for (int64_t d : both) sizes[d] = symbolic_sizes(a)[d];
  for (int64_t d : left) sizes[d] = symbolic_sizes(a)[d];
  for (int64_t d : right) sizes[d] = symbolic_sizes(b)[d];
  Tensor out = ops::bmm(arranged(a, left, inner, right),
                        arranged(b, inner, right, left));
  // Back from [both, left, right, the rest] to the frame's order.
  Dims<SymInt> made;
  DimVector order(both);
  for (const DimVector* group : {&left, &right, &inner, &only_a, &only_b}) {
    for (int64_t d : *group) order.push_back(d);
  }
  for (int64_t d : order) made.push_back(sizes[d]);
  DimVector back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) back[order[i]] = i;
  return ops::permute(reshape_sized(out, made), back);
}

}  // namespace

Tensor einsum(std::string_view equation,
              TensorList tensors,
              std::optional<ArrayRef<int64_t>> path) {
  TAEDA_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  Equation e = parse(equation, tensors.size());
  Frame f = make_frame(e, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(framed(tensors[i], e.inputs[i], f, i));
  }
  check_broadcast(operands, e.inputs, f);
  TAEDA_CHECK(!path || path->size() == 2 * (operands.size() - 1),
              "einsum(): expected contraction path given in path parameter to "
              "have size 2*",
              static_cast<int64_t>(operands.size()) - 1);
  for (size_t step = 0; operands.size() > 1; ++step) {
    size_t i = 0, j = 1;
    if (path) {
      i = static_cast<size_t>((*path)[2 * step]);
      j = static_cast<size_t>((*path)[2 * step + 1]);
      if (j < i) std::swap(i, j);
      TAEDA_CHECK(i != j && j < operands.size(),
                  "einsum(): invalid contraction path");
    }
    Tensor a = operands[i], b = operands[j];
    operands.erase(operands.begin() + static_cast<int64_t>(j));
    operands.erase(operands.begin() + static_cast<int64_t>(i));
    // Dims that nobody needs any more are summed over now.
    std::vector<bool> summed(static_cast<size_t>(f.rank));
    for (int64_t d = f.out_rank; d < f.rank; ++d) {
      bool needed =
          std::any_of(operands.begin(), operands.end(), [&](const Tensor& t) {
            return symbolic_sizes(t)[d] != 1;
          });
      summed[static_cast<size_t>(d)] = !needed;
    }
    Tensor made = contract(a, b, summed);
    if (path) {
      operands.push_back(made);
    } else {
      operands.insert(operands.begin(), made);
    }
  }
  Tensor out = operands[0];
  DimVector rest;
  for (int64_t d = f.out_rank; d < f.rank; ++d) rest.push_back(d);
  if (rest.empty()) return out;
  // A product has summed them already.
  if (tensors.size() > 1) return ops::squeeze(out, IntArrayRef(rest));
  return ops::sum(out, IntArrayRef(rest), false);
}

}  // namespace taeda::native
