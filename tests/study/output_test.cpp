#include "study/inputs/output.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/team.h"
#include "study/inputs/field_error.h"
#include "study/flows/train.h"
#include "tests/base/support.h"

namespace graft::study {
namespace {

const std::filesystem::path source = GRAFT_SOURCE_DIR;

TEST(CheckOutput, ADatasetIsReplacedByItsOwnKindOnly) {
  const base::Folder folder;
  const std::filesystem::path data = folder / "data.h5", model = folder / "model.h5", text = folder / "text";
  std::filesystem::copy_file(source / "datasets/shipped/model-haswell.h5", data);
  std::filesystem::copy_file(source / "models/base.h5", model);
  base::replace_file(text, "text");
  for (const Writes writes : {Writes::text, Writes::model, Writes::imported_dataset, Writes::cleaned_dataset})
    EXPECT_THROW(check_output("out", data, writes), FieldError) << int(writes);
  EXPECT_NO_THROW(check_output("out", data, Writes::collected_dataset));
  for (const Writes writes :
       {Writes::text, Writes::imported_dataset, Writes::cleaned_dataset, Writes::collected_dataset})
    EXPECT_THROW(check_output("out", model, writes), FieldError) << int(writes);
  EXPECT_NO_THROW(check_output("out", model, Writes::model));
  for (const Writes writes :
       {Writes::text, Writes::model, Writes::imported_dataset, Writes::cleaned_dataset, Writes::collected_dataset}) {
    EXPECT_NO_THROW(check_output("out", text, writes));
    EXPECT_NO_THROW(check_output("out", folder / "new", writes));
    EXPECT_THROW(check_output("out", text, writes, {text.string()}), FieldError);
    EXPECT_THROW(check_output("out", folder.path(), writes), FieldError);
    EXPECT_THROW(check_output("out", folder / "none/new", writes), FieldError);
  }
  EXPECT_EQ(base::refusal([&] { check_output("losses", text, Writes::text, {text.string()}); }),
            "losses: " + text.string() + " is one of the inputs; choose another name");
}

// Whoever calls: the program, C++ or Python.
TEST(CheckOutput, TrainingNeverReplacesItsData) {
  const base::Folder folder;
  const std::filesystem::path data = folder / "data.h5";
  std::filesystem::copy_file(source / "datasets/shipped/model-haswell.h5", data);
  const std::string before = base::read_file(data);
  TrainRequest request;
  request.data.files = {data.string()};
  request.out = data;
  base::Team team;
  base::Monitor monitor;
  EXPECT_THROW(train(request, team, monitor), FieldError);
  EXPECT_EQ(base::read_file(data), before);
}

}  // namespace
}  // namespace graft::study
