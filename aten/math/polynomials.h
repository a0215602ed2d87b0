// Written by tools/minimax.py; what is fitted stands in tools/fits.py.
// clang-format off
#pragma once

#include <taeda/aten/math/prim.h>

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

// error 2^-31.2, with rounded coefficients 2^-27.2
TAEDA_FN float atan_poly(float t) {
  return poly_chain(
      t,
      -0x1.555552p-2f, 0x1.9997e2p-3f, -0x1.24737ep-3f, 0x1.c4f25ep-4f,
      -0x1.68e88p-4f, 0x1.142592p-4f, -0x1.6e1fep-5f, 0x1.715352p-6f,
      -0x1.dfa298p-8f, 0x1.23ffbap-10f
  );
}

// error 2^-62.8, with rounded coefficients 2^-56.1
TAEDA_FN double atan_poly(double t) {
  return poly_chain(
      t,
      -0x1.5555555555554p-2, 0x1.99999999996f8p-3, -0x1.24924924858bfp-3,
      0x1.c71c71c326d67p-4, -0x1.745d16e654645p-4, 0x1.3b13ab3b8b366p-4,
      -0x1.1110ccab256fcp-4, 0x1.e1dd5f76d2c59p-5, -0x1.af0b5eb6c5252p-5,
      0x1.8586219d31842p-5, -0x1.61e2b1ac74c6fp-5, 0x1.4047c3655bb7bp-5,
      -0x1.1bdb99aa78b2p-5, 0x1.dfa4fb02be291p-6, -0x1.7507273760e7p-6,
      0x1.00c5de430ddp-6, -0x1.2c4b06b825a8p-7, 0x1.1d8f9c8cfb522p-8,
      -0x1.a363686623aebp-10, 0x1.bacf3e4699d6fp-12, -0x1.298a5bd0a0abdp-14,
      0x1.7cdbc5620109ep-18
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

// error 2^-30.8, with rounded coefficients 2^-28.6
TAEDA_FN Pair<float> erfc_parts(float t) {
  return poly_parts(
      t,
      0x1.0939a8p-27f, 0x1.46e80ep0f, -0x1.7bf5eap-4f, -0x1.5407b8p-3f,
      0x1.4ff9d6p-3f, -0x1.bc2ddp-5f, -0x1.06fff8p-7f, 0x1.1e18e4p-7f,
      0x1.40a5f8p-10f, -0x1.849dacp-10f, -0x1.504c58p-12f, 0x1.e50ab2p-13f
  );
}

// error 2^-60.6, with rounded coefficients 2^-57.8
TAEDA_FN Pair<double> erfc_parts(double t) {
  return poly_parts(
      t,
      -0x1.a70ab45becf6cp-55, 0x1.3ba5916e9fd7fp0, -0x1.1df1ad154a28ep-3,
      0x1.f7f5df66fd758p-7, 0x1.16ecefcfa52d9p-4, -0x1.9ddb23c3e8d41p-4,
      0x1.7fee004e146a7p-4, -0x1.0fb06dfe4faa2p-4, 0x1.3079edf62b5bp-5,
      -0x1.09623883a02b4p-6, 0x1.49c672a5f1a1cp-8, -0x1.8d4a9b6a5621dp-11,
      -0x1.a1df41b3dbe6p-13, 0x1.3be05c54d035p-13, -0x1.99553aa7d229fp-16,
      -0x1.788afc37aa2cp-17, 0x1.7ef8654e265f3p-18, 0x1.3b301023c9a82p-22,
      -0x1.b8224de48f94fp-21, 0x1.416ef67843e97p-24, 0x1.bc8f6f3c90371p-24,
      -0x1.34a835af4432ep-26, -0x1.4eacf711768p-27, 0x1.f5421071664afp-30
  );
}

// error 2^-44.6, with rounded coefficients 2^-44.6
TAEDA_FN double pow_log2_poly(double t) {
  return poly(
      t,
      0x1.71547652b825p1, 0x1.ec709dc53e328p-1, 0x1.2776c29109497p-1,
      0x1.a61a30aa8f1a2p-2, 0x1.479503f8a354dp-2, 0x1.21b5c758c045p-2
  );
}

// error 2^-34.5, with rounded coefficients 2^-34.5
TAEDA_FN double pow_exp2_poly(double t) {
  return poly(
      t,
      0x1.ffffffffaa73p-1, 0x1.62e42ff11c7b6p-1, 0x1.ebfbe0a6cb086p-3,
      0x1.c6b08aa61680bp-5, 0x1.3b29da827f1fcp-7, 0x1.5d8a7606f7e7ap-10,
      0x1.446b88b207fd2p-13, 0x1.fe155439e5f17p-17
  );
}

// error 2^-72.5, with rounded coefficients 2^-65.3
TAEDA_FN double pow_atanh_poly(double t) {
  return poly(
      t,
      0x1.9999999999996p-2, 0x1.2492492493048p-2, 0x1.c71c71c57e155p-3,
      0x1.745d1833713bap-3, 0x1.3b1362696101fp-3, 0x1.1120c132509aep-3,
      0x1.de319973a2b53p-4, 0x1.eb2082ed3450ep-4
  );
}

// error 2^-28.7, with rounded coefficients 2^-25.6
TAEDA_FN Pair<float> erfinv_parts(float t) {
  return poly_parts(
      t,
      -0x1.f160ccp-25f, 0x1.805c5ep0f, 0x1.f91e8cp-3f, -0x1.11c42p-8f,
      -0x1.486646p-10f, 0x1.c9c5ap-13f, -0x1.4cfcf4p-18f, -0x1.ccfcf8p-19f,
      0x1.f43f0ep-22f, 0x1.35e9cep-26f, -0x1.2d6d3ep-27f, 0x1.70d746p-32f
  );
}

// error 2^-56.1, with rounded coefficients 2^-54.5
TAEDA_FN Pair<double> erfinv_parts(double t) {
  return poly_parts(
      t,
      -0x1.7b12ad390e891p-54, 0x1.805c5cfcedef5p0, 0x1.f91e8993f0d17p-3,
      -0x1.11c3c302dfb3cp-8, -0x1.4863cdfb6268fp-10, 0x1.c9b437ed03a56p-13,
      -0x1.4f47fe6fa1ddcp-18, -0x1.ca9227b23c14fp-19, 0x1.01037e0db6a67p-21,
      0x1.ccff5437ddfbp-27, -0x1.752fd11345ff5p-27, 0x1.f2cd2437ed993p-31,
      0x1.07038db5087dp-33, -0x1.11a0891168868p-35, 0x1.00c7816e77613p-40,
      0x1.2e624b74df746p-41, -0x1.577edf41e97dap-44, -0x1.c927e12c53e4ep-49,
      0x1.13ff95f8eb7d4p-49, -0x1.d53eb7e25d882p-54, -0x1.03860ad480185p-55,
      0x1.78524050c1f47p-59, 0x1.efde2a02245bcp-63
  );
}

// error 2^-29.3, with rounded coefficients 2^-25.8
TAEDA_FN Pair<float> erfinv_tail_parts(float t) {
  return poly_parts(
      t,
      0x1.a7d776p-28f, 0x1.7aaa3cp1f, 0x1.00f3b4p0f, 0x1.cde79cp-8f,
      -0x1.5b580ap-8f, 0x1.f0fef8p-9f, -0x1.4b17c4p-9f, 0x1.4db0eap-10f,
      -0x1.48f924p-12f, -0x1.e9a594p-14f, 0x1.02e0c4p-13f, -0x1.f6e29p-16f
  );
}

// error 2^-21.0, with rounded coefficients 2^-21.0
TAEDA_FN Pair<double> erfinv_tail_parts(double t) {
  return poly_parts(
      t,
      0x1.9fa1e6c4b6dd7p-52, 0x1.05e7055d0f52ap2, 0x1.028e1772006bfp0,
      0x1.66f20a0055772p-11, -0x1.461837f4e6a39p-11, 0x1.22b57ebe57fb1p-12,
      -0x1.7b9a49920b6fbp-15, -0x1.0fad285fbeacfp-15, -0x1.312b25e84b165p-16,
      0x1.a7ed236bc4308p-16, -0x1.ada6d076367c7p-19, -0x1.1c50072d6507dp-20
  );
}

// error 2^-62.5, with rounded coefficients 2^-55.2
TAEDA_FN double lgamma_poly(double t) {
  return poly(
      t,
      0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa6p-2, -0x1.13e001a55760ap-4,
      0x1.51322ac7d84fp-6, -0x1.e404fc218dcc9p-8, 0x1.7add6eada70eep-9,
      -0x1.38ac5c2d3cd0fp-10, 0x1.0b36af8e8abf5p-11, -0x1.d3fd4b6edc93bp-13,
      0x1.a127ac1a9c73p-14, -0x1.78de9968d1949p-15, 0x1.580ea6d3ab0d5p-16,
      -0x1.3cb3e1a201d11p-17, 0x1.2580344e61e39p-18, -0x1.1274bc1e3b50dp-19,
      0x1.01fb4427cb043p-20, -0x1.ce3c97e82412cp-22, 0x1.a657daa19ea88p-23,
      -0x1.1fc79069c086dp-23, 0x1.290cd1dc51ef2p-24
  );
}

// error 2^-60.6, with rounded coefficients 2^-57.6
TAEDA_FN double stirling_poly(double t) {
  return poly(
      t,
      0x1.5555555555555p-4, -0x1.6c16c16c14af6p-9, 0x1.a01a017e8a988p-11,
      -0x1.38134e168d66fp-11, 0x1.b92c93c918b29p-11, -0x1.ef9816b751a7ep-10,
      0x1.4c38726d3fe6ep-8
  );
}

// error 2^-64.7, with rounded coefficients 2^-63.0
TAEDA_FN double digamma_poly(double t) {
  return poly(
      t,
      0x1.5555555555549p-4, -0x1.11111110e8041p-7, 0x1.0410405030a65p-8,
      -0x1.1110558f2f765p-8, 0x1.f012d1f1d852ap-8, -0x1.5155173199c0fp-6,
      0x1.f821281f842p-5
  );
}

// error 2^-66.1, with rounded coefficients 2^-62.9
TAEDA_FN double trigamma_poly(double t) {
  return poly(
      t,
      0x1.5555555555552p-3, -0x1.111111110aafep-5, 0x1.861861622539ap-6,
      -0x1.1110f87e56243p-5, 0x1.364439da4e198p-4, -0x1.0223bcbe162d8p-2,
      0x1.18c56965d2e0bp0, -0x1.176aa8f0014bfp2
  );
}

// error 2^-26.7, with rounded coefficients 2^-25.3
TAEDA_FN float i0_poly(float t) {
  return poly(
      t,
      0x1p0f, 0x1.000004p0f, 0x1.ffff94p-3f, 0x1.c720cp-6f, 0x1.c6f3b8p-10f,
      0x1.241444p-14f, 0x1.fc5c68p-20f, 0x1.72baecp-25f, 0x1.a30decp-32f,
      0x1.079bfp-36f
  );
}

// error 2^-59.9, with rounded coefficients 2^-55.6
TAEDA_FN double i0_poly(double t) {
  return poly(
      t,
      0x1p0, 0x1p0, 0x1.ffffffffffff3p-3, 0x1.c71c71c71c85bp-6,
      0x1.c71c71c71a936p-10, 0x1.23456789c5e7dp-14, 0x1.02e85c06c936ap-19,
      0x1.522a442190c94p-25, 0x1.522a412689d7cp-31, 0x1.0b3153e868fe2p-37,
      0x1.55ff4d71d2348p-44, 0x1.69e61feddd03p-51, 0x1.40a5d86d09f45p-58,
      0x1.f2a31dd315207p-66, 0x1.108b1a59454e7p-73, 0x1.1cb01973afd1bp-80
  );
}

// error 2^-29.6, with rounded coefficients 2^-25.2
TAEDA_FN float i0_tail_poly(float t) {
  return poly(
      t,
      0x1.9bd428p-2f, 0x1.b87988p-8f, 0x1.1dab3p-11f, 0x1.74e1d2p-14f,
      0x1.8c15f2p-16f, 0x1.84e098p-17f, 0x1.d421dap-18f
  );
}

// error 2^-60.0, with rounded coefficients 2^-53.8
TAEDA_FN double i0_tail_poly(double t) {
  return poly(
      t,
      0x1.9bd428ad249a5p-2, 0x1.b87969bb93bc4p-8, 0x1.1daa72b5e647ap-11,
      0x1.75e5ee70000cfp-14, 0x1.8e513a0ddb348p-16, 0x1.3f49adecc5581p-17,
      0x1.7d0f9d93c7d2cp-18, 0x1.51cbb8244dcb8p-18, 0x1.721aba74ad5b3p-18,
      0x1.03eb2a4b23fd2p-18, -0x1.cd26784f5b25ap-18, -0x1.ce6b33e187621p-16,
      -0x1.7e7b9f4c710c2p-16, 0x1.08fb4a82cc79bp-14, 0x1.0f700906634ebp-13,
      -0x1.08c1d16a5af73p-13, -0x1.d9741be761f6ep-12, 0x1.171fc7ce40cefp-12,
      0x1.520c7fe790e25p-10, -0x1.27494de968bp-11, -0x1.8136f3c0ab708p-9,
      0x1.01f6065e88911p-10, 0x1.3fbd29192c1afp-8, -0x1.29f34092fb32ep-10,
      -0x1.4fe6790a48a3ep-8, 0x1.44c851609f95bp-11, 0x1.4a94eaaedd368p-9
  );
}

}  // namespace taeda::math
