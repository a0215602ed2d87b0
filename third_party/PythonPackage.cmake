# taeda_python_roots(OUT): the folders in which the build's Python packages put
# headers and libraries, in this order: the interpreter's import path (with the
# overlay that an isolated `pip install` adds), cmeel.prefix below each of these,
# and the data prefix above it.
function(taeda_python_roots out)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c [==[
import pathlib, sys
roots = []
for entry in map(pathlib.Path, filter(None, sys.path)):
    if entry.name in ("site-packages", "dist-packages", "site"):
        roots += [entry, entry / "cmeel.prefix", *entry.parents[:3]]
print(";".join(dict.fromkeys(str(r) for r in roots if r.is_dir())))
]==]
    OUTPUT_VARIABLE _roots
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${_roots}" PARENT_SCOPE)
endfunction()

# taeda_headers(OUT DIR NAME): a folder of headers by a name in the build tree. Compilers
# write the names of headers into what they make, and those of packages differ from one
# environment to the next: with these ccache finds its objects in any tree.
function(taeda_headers out dir name)
  if(dir IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set(${out} "${dir}" PARENT_SCOPE)
    return()
  endif()
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/headers")
  file(CREATE_LINK "${dir}" "${CMAKE_BINARY_DIR}/headers/${name}" SYMBOLIC)
  set(${out} "${CMAKE_BINARY_DIR}/headers/${name}" PARENT_SCOPE)
endfunction()
