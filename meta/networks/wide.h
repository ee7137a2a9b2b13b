// Loops with the widest vectors of the present CPU, in a program that is built for the baseline one. Private to
// networks/.
#pragma once

#define GRAFT_INLINE inline __attribute__((always_inline))
// A lambda that is inlined into the loops that it is passed to, for any instruction set.
#define GRAFT_INLINED __attribute__((always_inline))

namespace graft::meta {

namespace wide {
#ifdef __x86_64__
template <class Body>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512"))) void run_v4(
    const Body& body) {
  body.template operator()<16>();
}
template <class Body>
__attribute__((target("avx2,fma"))) void run_v3(const Body& body) {
  body.template operator()<8>();
}
#endif
}  // namespace wide

// Calls body<lanes>(), a lambda marked GRAFT_INLINED, compiled for vectors of that many floats.
template <class Body>
void with_vectors(const Body& body) {
#ifdef __x86_64__
  static const int level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
                               ? 4
                           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 3
                                                                                             : 2;
  if (level == 4) return wide::run_v4(body);
  if (level == 3) return wide::run_v3(body);
#endif
  body.template operator()<4>();
}

// The same for loops that the compiler turns into vectors, whose number of floats they need not know.
template <class Body>
void with_wide_vectors(const Body& body) {
  with_vectors([&]<int>() GRAFT_INLINED { body(); });
}

}  // namespace graft::meta
