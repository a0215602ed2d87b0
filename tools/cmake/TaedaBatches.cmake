# Sources of libtaeda that are compiled together (see taeda_batches). On their own
# remain what every call runs through (c10, aten/core, aten/iter, the engine), what has
# options of its own, and what takes seconds by itself.
taeda_batches(taeda_objects aten/native
  "[ab]" "[de]" "[fg]" "[h-l]" "[mn]" "[pq]" "r" "s[a-n]" "s" "u")
taeda_batches(taeda_objects aten/native/cpu
  "[ab]" "[g-l]" "[mn]" "(scan|s[d-z])" "[t-z]")
taeda_batches(taeda_objects aten/native/linalg "([p-s]|te)")
taeda_batches(taeda_objects aten/native/sparse "[r-z]")
taeda_batches(taeda_objects csrc/autograd "formulas_[i-p]")
taeda_batches(taeda_objects aten/expr "[a-z]")
