// What a call throws, for the tests of user checks.
#pragma once

#include <taeda/c10/util/check.h>

#include <gtest/gtest.h>

#include <string>

namespace taeda {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

inline void expect_error(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// Expects an error of this kind whose message has `part` in it.
template <class F>
void expect_throws(ErrorKind kind, const std::string& part, F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    expect_error(e.what(), part);
    return;
  }
  ADD_FAILURE() << "no error with: " << part;
}

}  // namespace taeda
