#!/bin/sh
# cached_compile.sh CCACHE COMPILER...: compiles through ccache, which would take a
# precompiled header that stands where its successor will for the headers themselves:
# it finds what was made of others then, whichever those were.
before=
for word in "$@"; do
  case "$before $word" in
    "-o "*.gch) rm -f "$word" ;;
  esac
  before=$word
done
exec "$@"
