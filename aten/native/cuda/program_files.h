// Compiled programs on disk, so that each machine compiles a text once.
#pragma once

#include <string>

namespace taeda::cuda {

// The file of one text for one architecture and compiler, in the folder
// `cuda` of TAEDA_CACHE_DIR (else of XDG_CACHE_HOME/taeda or ~/.cache/taeda).
// Files are written beside their place and renamed; they hold their key and a
// checksum, so that a damaged or foreign one counts as absent.
class ProgramFile {
 public:
  ProgramFile(const std::string& text, const std::string& architecture);
  // Empty where there is none.
  std::string read() const;
  // Does nothing where the folder cannot be written.
  void write(const std::string& code) const;

 private:
  std::string path_;  // empty without a folder
  std::string key_;
};

// Programs that were compiled when the wheel was built, in a file beside the
// library (or the one that TAEDA_CUDA_PROGRAMS names): those that are used most
// (tools/devtool/cubins.py), for several architectures. Empty where there is
// none for the text; they need no compiler on this machine.
std::string packed_program(const std::string& text,
                           const std::string& architecture);

}  // namespace taeda::cuda
