// Written by tools/minimax.py; what is fitted stands in tools/fits.py.
#pragma once

#include "prim.h"

namespace taeda::math {

// error 2^-28.3, with rounded coefficients 2^-28.0
TAEDA_FN float exp_poly(float t) {
  return poly(
      t,
      0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f8p-5f, 0x1.123a3ep-7f,
      0x1.6a2132p-10f
  );
}

// error 2^-57.9, with rounded coefficients 2^-56.4
TAEDA_FN double exp_poly(double t) {
  return poly(
      t,
      0x1.000000000000ap-1, 0x1.55555555554f8p-3, 0x1.555555555080ap-5,
      0x1.1111111128072p-7, 0x1.6c16c184479f3p-10, 0x1.a01a01292aa6dp-13,
      0x1.a01999b3888abp-16, 0x1.71df2731afdafp-19, 0x1.28adcb3082871p-22,
      0x1.ad7d9a98d40bcp-26
  );
}

// error 2^-28.9, with rounded coefficients 2^-25.9
TAEDA_FN float exp2_poly(float t) {
  return poly(
      t,
      0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6aee6p-5f, 0x1.3b2d58p-7f,
      0x1.5f400ap-10f, 0x1.41f79cp-13f
  );
}

// error 2^-64.3, with rounded coefficients 2^-55.6
TAEDA_FN double exp2_poly(double t) {
  return poly(
      t,
      0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0cfp-5,
      0x1.3b2ab6fba4e2p-7, 0x1.5d87fe78a25c2p-10, 0x1.430912f8842e6p-13,
      0x1.ffcbfc752cacbp-17, 0x1.62c021e162a1p-20, 0x1.b524dc91cb0aep-24,
      0x1.e4d06eaff6b5dp-28, 0x1.ea028b1b5836dp-32, 0x1.c2cdaf0f92a36p-36
  );
}

// error 2^-30.3, with rounded coefficients 2^-28.1
TAEDA_FN float log_poly(float t) {
  return poly(
      t,
      0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4b4p-3f, -0x1.555c4p-3f,
      0x1.233776p-3f, -0x1.fc2362p-4f, 0x1.e6f14ep-4f, -0x1.de367ap-4f,
      0x1.144fbep-4f
  );
}

// error 2^-30.2, with rounded coefficients 2^-30.0
TAEDA_FN float log_s_poly(float t) {
  return poly(
      t,
      0x1.55557ap-1f, 0x1.995e9ap-2f, 0x1.31e682p-2f
  );
}

// error 2^-59.5, with rounded coefficients 2^-58.9
TAEDA_FN double log_s_poly(double t) {
  return poly(
      t,
      0x1.5555555555593p-1, 0x1.999999997fc16p-2, 0x1.249249420c839p-2,
      0x1.c71c51efb967dp-3, 0x1.746644d41b322p-3, 0x1.39a11202afc2fp-3,
      0x1.2f0c9d1abe4dbp-3
  );
}

// error 2^-27.9, with rounded coefficients 2^-27.1
TAEDA_FN float sin_poly(float t) {
  return poly(
      t,
      -0x1.555544p-3f, 0x1.110708p-7f, -0x1.993242p-13f
  );
}

// error 2^-57.8, with rounded coefficients 2^-56.4
TAEDA_FN double sin_poly(double t) {
  return poly(
      t,
      -0x1.5555555555548p-3, 0x1.111111110f69p-7, -0x1.a01a019bd4021p-13,
      0x1.71de354208339p-19, -0x1.ae5e3bfb10965p-26, 0x1.5d86b1797a691p-33
  );
}

// error 2^-32.9, with rounded coefficients 2^-31.1
TAEDA_FN float cos_poly(float t) {
  return poly(
      t,
      0x1.55554ap-5f, -0x1.6c0bfcp-10f, 0x1.99dbaep-16f
  );
}

// error 2^-63.8, with rounded coefficients 2^-62.0
TAEDA_FN double cos_poly(double t) {
  return poly(
      t,
      0x1.555555555554ap-5, -0x1.6c16c16c14e18p-10, 0x1.a01a019c5e9ddp-16,
      -0x1.27e4f7cef3646p-22, 0x1.1ee9c46bd7c78p-29, -0x1.8f9a6e707bf9bp-37
  );
}

// error 2^-29.4, with rounded coefficients 2^-27.4
TAEDA_FN float tan_poly(float t) {
  return poly(
      t,
      0x1.555562p-2f, 0x1.110d4cp-3f, 0x1.bae7ep-5f, 0x1.5c2f8cp-6f,
      0x1.65c028p-7f, -0x1.20a96p-16f, 0x1.2257ecp-8f
  );
}

// error 2^-59.7, with rounded coefficients 2^-57.4
TAEDA_FN double tan_poly(double t) {
  return poly(
      t,
      0x1.555555555555fp-2, 0x1.11111111104a9p-3, 0x1.ba1ba1bacf145p-5,
      0x1.664f4859ba9cap-6, 0x1.226e3af0a1ab2p-7, 0x1.d6d2d56ed7619p-9,
      0x1.7db293a3b0dfbp-10, 0x1.34b1e3ecc8cd3p-11, 0x1.ffc0e64f6f2d2p-13,
      0x1.5b8850c2da4eep-14, 0x1.1f56bf7539a01p-14, -0x1.c98589bb9e9a4p-16,
      0x1.a3869a143eb3ap-15, -0x1.a2c09be0a0357p-16, 0x1.4df3dc7377dc5p-17
  );
}

// error 2^-31.7, with rounded coefficients 2^-30.1
TAEDA_FN float asin_poly(float t) {
  return poly(
      t,
      0x1.55554cp-3f, 0x1.33387cp-4f, 0x1.6caeeep-5f, 0x1.049126p-5f,
      0x1.d921dap-7f, 0x1.335666p-5f
  );
}

// error 2^-59.8, with rounded coefficients 2^-59.8
TAEDA_FN double asin_poly(double t) {
  return poly(
      t,
      0x1.5555555555577p-3, 0x1.333333332e141p-4, 0x1.6db6db72114dbp-5,
      0x1.f1c71a956bc12p-6, 0x1.6e8bded286bb4p-6, 0x1.1c49f14d85789p-6,
      0x1.ca1f7837e70bap-7, 0x1.758628d8ad161p-7, 0x1.61396b6bfe30ap-7,
      0x1.e61f348cd74dcp-9, 0x1.6391775b45c68p-6, -0x1.57f044052a47p-6,
      0x1.0b434b9c9e2b1p-5
  );
}

// error 2^-30.5, with rounded coefficients 2^-28.2
TAEDA_FN float atan_poly(float t) {
  return poly(
      t,
      -0x1.55554ap-2f, 0x1.99919p-3f, -0x1.23b4a6p-3f, 0x1.b1e40cp-4f,
      -0x1.f1c02ep-5f
  );
}

// error 2^-59.4, with rounded coefficients 2^-57.1
TAEDA_FN double atan_poly(double t) {
  return poly(
      t,
      -0x1.555555555553cp-2, 0x1.999999999576bp-3, -0x1.24924922a790cp-3,
      0x1.c71c70e3de193p-4, -0x1.745cf89e0f3d4p-4, 0x1.3b1114c641487p-4,
      -0x1.10eb86a869a08p-4, 0x1.df0c7225af3a2p-5, -0x1.9cc5c3b5042b3p-5,
      0x1.37b44de4855e9p-5, -0x1.252080827ecdbp-6
  );
}

// error 2^-32.6, with rounded coefficients 2^-28.4
TAEDA_FN float tanh_poly(float t) {
  return poly(
      t,
      -0x1.555554p-2f, 0x1.111066p-3f, -0x1.b9ee96p-5f, 0x1.638b86p-6f,
      -0x1.0bf5a6p-7f, 0x1.18e3b8p-9f
  );
}

// error 2^-61.2, with rounded coefficients 2^-57.0
TAEDA_FN double tanh_poly(double t) {
  return poly(
      t,
      -0x1.5555555555552p-2, 0x1.1111111110c07p-3, -0x1.ba1ba1b9ce8a7p-5,
      0x1.664f48703dd99p-6, -0x1.226e32c1da7a9p-7, 0x1.d6d35863fe307p-9,
      -0x1.7d9c1e4128dep-10, 0x1.350ae7de1e1a6p-11, -0x1.f10ced13b7aa9p-13,
      0x1.8006b91bc0598p-14, -0x1.fa771ad3862aep-16, 0x1.9583747c8d136p-18
  );
}

// error 2^-34.2, with rounded coefficients 2^-27.5
TAEDA_FN float sinh_poly(float t) {
  return poly(
      t,
      0x1.555556p-3f, 0x1.111134p-7f, 0x1.9ffe92p-13f, 0x1.7a15d4p-19f
  );
}

// error 2^-63.3, with rounded coefficients 2^-56.6
TAEDA_FN double sinh_poly(double t) {
  return poly(
      t,
      0x1.5555555555556p-3, 0x1.11111111110a6p-7, 0x1.a01a01a028939p-13,
      0x1.71de3a465f0a5p-19, 0x1.ae646718b3979p-26, 0x1.611a56d0be9b9p-33,
      0x1.b4c733004bdacp-41
  );
}

// error 2^-29.6, with rounded coefficients 2^-28.2
TAEDA_FN float erf_poly(float t) {
  return poly(
      t,
      0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2cf8p-4f, -0x1.b7f91cp-6f,
      0x1.540612p-8f, -0x1.a3f95p-11f, 0x1.496f9cp-14f
  );
}

// error 2^-62.7, with rounded coefficients 2^-56.3
TAEDA_FN double erf_poly(double t) {
  return poly(
      t,
      0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b21p-4,
      -0x1.b82ce312849b7p-6, 0x1.565bcd0db068ep-8, -0x1.c02db3d8f6a01p-11,
      0x1.f9a321a216c1p-14, -0x1.f4d1df4a19357p-17, 0x1.b9def25fb1f45p-20,
      -0x1.5f1d3c85b5bb9p-23, 0x1.f7a449d5c35f1p-27, -0x1.386b5b0bc2845p-30,
      0x1.057b20919799ap-34
  );
}

// error 2^-35.5, with rounded coefficients 2^-26.7
TAEDA_FN float erf_log_poly(float t) {
  return poly(
      t,
      -0x1.d97fcp0f, -0x1.51c9bp1f, -0x1.afabbap-1f, -0x1.547d16p-5f,
      0x1.4934e4p-7f, -0x1.07bacap-9f, 0x1.2fa7dep-12f, -0x1.6c05fap-16f
  );
}

// error 2^-30.8, with rounded coefficients 2^-27.1
TAEDA_FN float erfc_poly(float t) {
  return poly(
      t,
      0x1.46e80ep0f, -0x1.7bf5eap-4f, -0x1.5407b8p-3f, 0x1.4ff9d6p-3f,
      -0x1.bc2ddp-5f, -0x1.06fff8p-7f, 0x1.1e18e4p-7f, 0x1.40a5f8p-10f,
      -0x1.849dacp-10f, -0x1.504c58p-12f, 0x1.e50ab2p-13f
  );
}

// error 2^-60.6, with rounded coefficients 2^-54.4
TAEDA_FN double erfc_poly(double t) {
  return poly(
      t,
      0x1.3ba5916e9fd7fp0, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fd758p-7,
      0x1.16ecefcfa52d9p-4, -0x1.9ddb23c3e8d41p-4, 0x1.7fee004e146a7p-4,
      -0x1.0fb06dfe4faa2p-4, 0x1.3079edf62b5bp-5, -0x1.09623883a02b4p-6,
      0x1.49c672a5f1a1cp-8, -0x1.8d4a9b6a5621dp-11, -0x1.a1df41b3dbe6p-13,
      0x1.3be05c54d035p-13, -0x1.99553aa7d229fp-16, -0x1.788afc37aa2cp-17,
      0x1.7ef8654e265f3p-18, 0x1.3b301023c9a82p-22, -0x1.b8224de48f94fp-21,
      0x1.416ef67843e97p-24, 0x1.bc8f6f3c90371p-24, -0x1.34a835af4432ep-26,
      -0x1.4eacf711768p-27, 0x1.f5421071664afp-30
  );
}

}  // namespace taeda::math
