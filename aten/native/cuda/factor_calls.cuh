// Parameters of the kernels of factors.cuh and spectra.cuh, for the host too:
// no device code.
#pragma once

namespace taeda {

// Matrices that lie column by column, without gaps, one behind the other.
struct FactorCall {
  long long count;  // of matrices
  long long rows, columns;
  long long right;  // columns of the other side, or of U
  long long width;  // of them, those of a block
  void* a;
  void* other;    // right sides that become solutions; eigenvectors or U
  void* third;    // V^H
  void* numbers;  // tau, eigenvalues or singular values
  void* scratch;  // of each block, where shared memory is too small
  int* pivots;
  int* info;
  int upper, unit;  // of triangles
  int vectors;      // whether they are wanted
};

}  // namespace taeda
