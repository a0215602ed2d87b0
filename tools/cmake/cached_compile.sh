#!/bin/sh
# cached_compile.sh CCACHE COMPILER...: compiles through ccache, which would take a
# precompiled header that stands where its successor will for the headers themselves:
# it finds what was made of others then, whichever those were. The headers of a precompiled
# one are compared as they are written (CCACHE_DEPEND), since `#pragma once` is: of one
# whose headers had other comments, the compiler reads those headers a second time.
# Its text counts among what an object is made from: what an earlier one kept is not found.
export CCACHE_EXTRAFILES="$0"
before=
for word in "$@"; do
  case "$before $word" in
    "-o "*.gch)
      rm -f "$word"
      export CCACHE_DEPEND=1
      ;;
  esac
  before=$word
done
exec "$@"
