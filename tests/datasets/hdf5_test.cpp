#include "datasets/hdf5.h"

#include <cmath>
#include <limits>

#include "datasets/h5.h"
#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

base::Arrays example() {
  base::Arrays arrays;
  arrays.arrays["layer/0/weight"] = {{3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12.5f}};
  arrays.arrays["layer"] = {{2}, {0.1f, std::numeric_limits<float>::infinity()}};  // next to a name that it begins
  arrays.arrays["scalar"] = {{}, {42}};
  arrays.arrays["empty"] = {{0, 7}, {}};
  arrays.arrays["deep"] = {{2, 1, 1, 1, 2}, {1, 2, 3, 4}};
  arrays.attributes["card"] = std::string(100'000, 'x') + "\nüml \"äut\"";  // more than an HDF5 attribute could hold
  arrays.attributes["empty"] = "";
  return arrays;
}

TEST(Arrays, ReadBackEqual) {
  const Folder folder;
  write_arrays(example(), folder / "model.h5");
  EXPECT_EQ(read_arrays(folder / "model.h5"), example());
  EXPECT_EQ(kind_of_file(folder / "model.h5"), "arrays");
  write_arrays({}, folder / "model.h5");
  EXPECT_EQ(read_arrays(folder / "model.h5"), base::Arrays());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a temporary file is left";
}

TEST(Arrays, AnyBytesAreAName) {
  const Folder folder;
  base::Arrays arrays;
  float value = 0;
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("/"), std::string("//a"), std::string("a//b"),
        std::string("a/"), std::string("%"), std::string("%2f"), std::string("a b"), std::string("\xff\x01"),
        std::string("a\0b", 3), std::string("é")}) {
    arrays.arrays[name] = {{1}, {++value}};
    arrays.attributes[name] = "text of " + std::to_string(value);
  }
  write_arrays(arrays, folder / "a.h5");
  EXPECT_EQ(read_arrays(folder / "a.h5"), arrays);
}

TEST(Arrays, NotANumberSurvives) {
  const Folder folder;
  base::Arrays arrays;
  arrays.arrays["x"] = {{1}, {std::nanf("")}};
  write_arrays(arrays, folder / "a.h5");
  EXPECT_TRUE(std::isnan(read_arrays(folder / "a.h5").arrays.at("x").values.front()));
}

TEST(Arrays, EqualContentGivesEqualFiles) {
  const Folder folder;
  write_arrays(example(), folder / "a.h5");
  write_arrays(example(), folder / "b.h5");
  EXPECT_EQ(base::read_file(folder / "a.h5"), base::read_file(folder / "b.h5"));
}

TEST(Arrays, AFileThatCannotBeWrittenFails) {
  const Folder folder;
  EXPECT_TRUE(contains(message_of<base::Failure>([&] { write_arrays(example(), folder / "no/such/a.h5"); }), "a.h5"));
}

TEST(Arrays, OtherFilesAreRefused) {
  const Folder folder;
  const auto refusal = [&](const std::string& name) {
    const std::string message = message_of<base::UserError>([&] { read_arrays(folder / name); });
    EXPECT_TRUE(message.starts_with((folder / name).string() + ": ")) << message;
    return message;
  };
  refusal("missing.h5");
  write_plainly(folder / "text.h5", "not HDF5\n");
  EXPECT_TRUE(contains(refusal("text.h5"), "is not an HDF5 file"));
  write_plainly(folder / "nothing.h5", "");
  EXPECT_TRUE(contains(refusal("nothing.h5"), "is not an HDF5 file"));
  write_dataset(random_dataset(3, 1), folder / "dataset.h5");
  EXPECT_TRUE(
      contains(refusal("dataset.h5"), "is a dataset; expected a model; graft train and graft adapt write them"));
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { kind_of_file(folder / "text.h5"); }), "is not an HDF5 file"));

  h5::Writer other("arrays");  // without its groups
  other.commit(folder / "other.h5");
  EXPECT_TRUE(contains(refusal("other.h5"), "'arrays' is missing"));
  h5::Writer wrong("arrays");
  wrong.group("attributes");
  wrong.text("arrays/a", "a text");
  wrong.commit(folder / "wrong.h5");
  EXPECT_TRUE(contains(refusal("wrong.h5"), "'arrays/a' does not hold numbers"));
}

// A copy whose seal is cut off is a plain HDF5 file, as other programs write them.
TEST(Kind, WithoutASealIsKnownButNotRead) {
  const Folder folder;
  write_arrays(example(), folder / "a.h5");
  std::string bytes = base::read_file(folder / "a.h5");
  bytes.resize(bytes.rfind("graft-seal "));
  write_plainly(folder / "a.h5", bytes);
  EXPECT_EQ(kind_of_file(folder / "a.h5"), "arrays");
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { read_arrays(folder / "a.h5"); }), "its seal is missing"));
}

TEST(Damage, EveryTruncationIsRefused) {
  const Folder folder;
  write_arrays(example(), folder / "a.h5");
  write_dataset(random_dataset(60, 1), folder / "d.h5");
  for (const std::string name : {"a.h5", "d.h5"}) {
    const std::string whole = base::read_file(folder / name);
    base::Stream stream(7, name);
    std::vector<std::int64_t> lengths = {0, 1, 7, 8, 9, 95, 96, 512, 2048, std::int64_t(whole.size()) - 1};
    for (int i = 0; i < 150; ++i) lengths.push_back(stream.below(std::int64_t(whole.size())));
    for (const std::int64_t length : lengths) {
      write_plainly(folder / "cut.h5", std::string_view(whole).substr(0, std::size_t(length)));
      const std::string message = message_of<base::UserError>(
          [&] { name == "a.h5" ? void(read_arrays(folder / "cut.h5")) : void(read_dataset(folder / "cut.h5")); });
      EXPECT_TRUE(message.starts_with((folder / "cut.h5").string() + ": ")) << name << " cut to " << length;
      if (std::size_t(length) < whole.rfind("graft-seal ")) {
        message_of<base::UserError>([&] { kind_of_file(folder / "cut.h5"); });
      }
    }
  }
}

TEST(Damage, EveryFlippedByteIsRefused) {
  const Folder folder;
  write_dataset(random_dataset(60, 1), folder / "d.h5");
  const std::string whole = base::read_file(folder / "d.h5");
  base::Stream stream(8, "flips");
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    const std::size_t at = std::size_t(stream.below(std::int64_t(whole.size())));
    damaged[at] = char(damaged[at] ^ (1 + stream.below(255)));
    write_plainly(folder / "damaged.h5", damaged);
    const std::string message = message_of<base::UserError>([&] { read_dataset(folder / "damaged.h5"); });
    EXPECT_TRUE(message.starts_with((folder / "damaged.h5").string() + ": ")) << "flip " << i << " at " << at;
  }
}

}  // namespace
}  // namespace graft::datasets
