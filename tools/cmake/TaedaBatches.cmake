# Sources of libtaeda that are compiled together (see taeda_batches). On their own
# remain what every call runs through (c10, aten/core, aten/iter, the engine), what has
# options of its own, and what takes seconds by itself.
taeda_batches(taeda_objects aten/native
  "[ab]" "c" "[de]" "[fg]" "[h-l]" "[mn]" "[pq]" "r" "s[a-n]" "s" "u" "[v-z]")
taeda_batches(taeda_objects aten/native/cpu
  "[ab]" "c" "[de]" "f" "[g-l]" "[mn]" "[pq]" "ra" "r" "(scan|s[d-z])" "[t-z]")
taeda_batches(taeda_objects aten/native/linalg "[a-k]" "[l-o]" "([p-s]|te)")
taeda_batches(taeda_objects aten/native/sparse "[a-d]" "[e-q]" "[r-z]")
taeda_batches(taeda_objects csrc/functorch
  "batch_[a-k]" "batch_[l-o]" "batch_" "functional_[a-l]" "functional_" "[a-z]")
taeda_batches(taeda_objects csrc/autograd
  "formulas_[a-h]" "formulas_[i-p]" "formulas_")
taeda_batches(taeda_objects aten/expr "[a-z]")
taeda_batches(taeda_objects c10/symbolic "[a-z]")
taeda_batches(taeda_objects csrc/profiler "[a-z]")
