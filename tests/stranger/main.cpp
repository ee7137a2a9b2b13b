// Tunes a matmul on this machine, and writes a C library of the fastest program into the folder that is its argument.
#include <graft/graft.h>

#include <cstdio>

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "kernels";
  const graft::Workload workload("matmul(m=64,n=64,k=64)");

  graft::TuneSettings settings;
  settings.trials = 16;
  settings.timing.repetition_seconds = 1e-4;  // 1 ms, the default, gives steadier times
  settings.out = folder / "run";              // continued when called again
  settings.watch.progress = [](std::string_view what, std::int64_t done, std::int64_t total) {
    std::fprintf(stderr, "%.*s: %d of %d\n", int(what.size()), what.data(), int(done), int(total));
  };
  const graft::Answer answer = graft::tune(workload, graft::Platform("native"), settings);
  std::printf("%s: %.3g s, %.3g GFLOP/s, results checked by %s\n%s", answer.workload.c_str(), answer.seconds,
              answer.gflops, answer.check.c_str(), answer.schedule.c_str());

  graft::CompileSettings library;
  library.names = {{workload.text(), "multiply"}};
  graft::write(graft::compile({answer}, library), folder);
} catch (const graft::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return error.kind() == graft::Error::Kind::mistake ? 2 : 1;
}
