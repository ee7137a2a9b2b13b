#include "bench/blas.h"

#include <cblas.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "bench/shapes.h"

namespace graft::bench {

std::vector<Contender> openblas_contenders(const Problem& problem, int threads) {
  const auto product = matrix_product(problem.computation());
  if (!product || !problem.is_f32()) return {};
  openblas_set_num_threads(threads);
  const auto values = [&](int tensor) { return problem.values(problem.parameter_of(tensor)); };
  const float *a = values(product->a), *b = values(product->b);
  float* const c = values(product->c);
  const auto multiply = [p = *product, a, b, c] {
    const int m = int(p.m), n = int(p.n), k = int(p.k);
    for (std::int64_t i = 0; i < p.batch; ++i) {
      cblas_sgemm(CblasRowMajor, p.a_transposed ? CblasTrans : CblasNoTrans, p.b_transposed ? CblasTrans : CblasNoTrans,
                  m, n, k, 1.0F, a + i * m * k, p.a_transposed ? m : k, b + i * k * n, p.b_transposed ? k : n, 0.0F,
                  c + i * m * n, n);
    }
  };
  return {{.name = "openblas",
           .call = multiply,
           .check = [&problem] { return problem.outputs_right(); },
           .clear = [&problem] { problem.clear_outputs(); },
           .how = "sgemm"}};
}

std::string openblas_core() {
  return openblas_get_corename();
}

std::optional<std::string> better_openblas_core() {
#if defined(__x86_64__)
  const auto is_one_of = [](std::initializer_list<std::string_view> cores) {
    return std::find(cores.begin(), cores.end(), openblas_core()) != cores.end();
  };
  const bool wide = is_one_of({"SkylakeX", "Cooperlake", "Sapphirerapids", "SapphireRapids"});
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return wide ? std::nullopt : std::optional<std::string>("SkylakeX");
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    const bool fits = is_one_of({"Haswell", "Zen", "Excavator"});
    return fits ? std::nullopt : std::optional<std::string>("Haswell");
  }
#endif
  return std::nullopt;
}

base::Document openblas_context() {
  base::Document context = base::Document::map();
  context.set("core", openblas_core()).set("config", std::string(openblas_get_config()));
  return context;
}

}  // namespace graft::bench
