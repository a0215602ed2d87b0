#pragma once

#define TAEDA_API __attribute__((visibility("default")))
#define TAEDA_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define TAEDA_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#define TAEDA_COLD __attribute__((cold, noinline))
