# All C++ tests in one binary; `tools/dev test` runs it.
find_package(GTest REQUIRED)
enable_testing()
file(GLOB_RECURSE _tests CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/test/cpp/*_test.cpp")
if(_tests)
  add_executable(taeda_tests ${_tests})
  add_dependencies(taeda_tests taeda_gen)
  target_link_libraries(taeda_tests PRIVATE
    taeda taeda_flags GTest::gtest GTest::gtest_main fmt::fmt-header-only)
  set_target_properties(taeda_tests PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  add_test(NAME taeda_tests COMMAND taeda_tests)
endif()
