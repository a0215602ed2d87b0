# What `taeda` itself is: the rest of taeda/__init__.pyi is generated after this.
from taeda._C import dtype as _dtype
from taeda._C import layout as _layout
from taeda._C import memory_format as _memory_format

__version__: str
e = 2.718281828459045
pi = 3.141592653589793
inf = 1e400
nan = inf - inf
newaxis: None
has_openmp = has_lapack = has_spectral = True
has_mkl = False

bool: _dtype
bfloat16: _dtype
cdouble: _dtype
cfloat: _dtype
chalf: _dtype
complex32: _dtype
complex64: _dtype
complex128: _dtype
double: _dtype
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e4m3fnuz: _dtype
float8_e5m2: _dtype
float8_e5m2fnuz: _dtype
float8_e8m0fnu: _dtype
half: _dtype
int: _dtype
int8: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
long: _dtype
short: _dtype
uint8: _dtype
uint16: _dtype
uint32: _dtype
uint64: _dtype

jagged: _layout
sparse_bsc: _layout
sparse_bsr: _layout
sparse_coo: _layout
sparse_csc: _layout
sparse_csr: _layout
strided: _layout

channels_last: _memory_format
channels_last_3d: _memory_format
contiguous_format: _memory_format
legacy_contiguous_format: _memory_format
preserve_format: _memory_format
