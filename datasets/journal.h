// The authoritative record of a run: JSON lines, appended and fsynced one by one. A sketch is written once, before its
// first use. When it is read again a torn last line (the process was killed while writing) is forgiven and cut off; a
// broken line anywhere else is refused with file and line.
//
//   {"journal":1,"platform":"native","context":{...}}
//   {"sketch":0,"text":"sketch ..."}
//   {"trial":0,"workload":"matmul(...)","sketch":0,"arguments":[...],"program":"<hex>","status":"ok",...}
//
// It does not exclude a second writer: the lock of the run's directory does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "datasets/trial.h"

namespace graft::datasets {

struct JournalContent {
  base::Document head;  // without the key "journal", which belongs to the format
  std::vector<std::shared_ptr<const codegen::Sketch>> sketches;
  std::vector<Trial> trials;      // by rising index
  std::int64_t intact_bytes = 0;  // length of the part that was read; a torn last line may follow
};
JournalContent read_journal(const std::filesystem::path& path);  // UserError "<file>:<line>: ..." when broken

class Journal {
 public:
  // Opens or creates. An existing journal must have an equal head (UserError otherwise, naming the first differing
  // key); its trials are kept and returned by `trials`.
  Journal(const std::filesystem::path& path, const base::Document& head);
  // The trial is on disk when it returns. Throws Failure if it cannot be written, or must not be because reading would
  // refuse it: a contradictory measurement (trial.h), an index that is not above the last one.
  void append(const Trial& trial);
  const std::vector<Trial>& trials() const { return trials_; }

 private:
  base::AppendFile file_;
  std::vector<Trial> trials_;
  std::map<std::uint64_t, int> sketches_;  // by hash
  int sketch_count_ = 0;
};

}  // namespace graft::datasets
