#include "datasets/h5.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"

namespace graft::datasets::h5 {
namespace {

using base::Failure;
using base::UserError;

constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
constexpr std::string_view seal_begin = "graft-seal ";
constexpr std::size_t seal_length = seal_begin.size() + 16 + 1;
constexpr std::int64_t largest_file = std::int64_t(1) << 34;
// Deflate cannot do better than 1 : 1032, so a file that claims more than that is invalid.
constexpr std::uint64_t best_compression = 1100;

class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t number, Close close) : number_(number), close_(close) {}
  ~Id() {
    if (number_ >= 0) close_(number_);
  }
  Id(Id&& other) noexcept : number_(std::exchange(other.number_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(close_, other.close_);
    return *this;
  }
  operator hid_t() const { return number_; }
  bool ok() const { return number_ >= 0; }

 private:
  hid_t number_ = -1;
  Close close_ = nullptr;
};

// The library prints its error stack by itself unless it is told not to, once per thread.
void be_quiet() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

// The in-memory driver takes two open files of one name for one file, and looks for an existing file of that name:
// hence a name that is used once and that no file can have.
std::string image_name() {
  static std::atomic<std::uint64_t> counter = 0;
  return fmt::format("/dev/null/{}", counter++);
}

Id in_memory() {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, std::size_t(1) << 20, false);
  return access;
}

Id string_type() {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

std::string_view without_seal(std::string_view image) {
  if (image.size() < seal_length || image.back() != '\n') return {};
  if (image.substr(image.size() - seal_length, seal_begin.size()) != seal_begin) return {};
  return image.substr(0, image.size() - seal_length);
}

std::string seal_of(std::string_view content) {
  return fmt::format("{}{}\n", seal_begin, base::to_hex(base::hash_bytes(content)));
}

// A file read by others' programs may lack the seal; ours may not.
std::string checked_image(const std::filesystem::path& path, bool needs_seal) {
  const std::string place = path.string();
  std::string image = base::read_file(path, largest_file);
  if (!image.starts_with(signature)) throw UserError(place, "is not an HDF5 file");
  const std::string_view content = without_seal(image);
  if (content.empty()) {
    if (!needs_seal) return image;
    throw UserError(place,
                    "is truncated or was changed by another program: its seal is missing; restore it or make it again");
  }
  if (std::string_view(image).substr(content.size()) != seal_of(content)) {
    throw UserError(place, "is damaged: its content does not match its seal; restore it or make it again");
  }
  return image;
}

Id open_image(const std::string& image, const std::string& place) {
  be_quiet();
  const Id access = in_memory();
  // The library copies the bytes although it takes a pointer to non-const.
  H5Pset_file_image(access, const_cast<char*>(image.data()), image.size());
  Id file(H5Fopen(image_name().c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.ok()) throw UserError(place, "is not a readable HDF5 file: truncated or damaged");
  return file;
}

// Strings that the library allocated, released also on errors.
class Strings {
 public:
  Strings(hid_t type, hid_t space, std::size_t count) : type_(type), space_(space), pointers_(count) {}
  ~Strings() { H5Dvlen_reclaim(type_, space_, H5P_DEFAULT, pointers_.data()); }
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;
  char** data() { return pointers_.data(); }
  std::vector<std::string> values() const {
    std::vector<std::string> result;
    result.reserve(pointers_.size());
    for (const char* pointer : pointers_) result.emplace_back(pointer == nullptr ? "" : pointer);
    return result;
  }

 private:
  hid_t type_, space_;
  std::vector<char*> pointers_;
};

bool is_variable_string(hid_t type) {
  return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0;
}

std::string root_text(hid_t file, const char* name) {
  if (H5Aexists(file, name) <= 0) return "";
  const Id attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) return "";
  const Id stored(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (!stored.ok() || !space.ok() || !is_variable_string(stored)) return "";
  if (H5Sget_simple_extent_npoints(space) != 1) return "";
  const Id type = string_type();
  Strings strings(type, space, 1);
  if (H5Aread(attribute, type, strings.data()) < 0) return "";
  return strings.values().front();
}

// 0 if there is none.
std::int64_t root_schema(hid_t file) {
  if (H5Aexists(file, "graft_schema") <= 0) return 0;
  const Id attribute(H5Aopen(file, "graft_schema", H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) return 0;
  const Id stored(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (!stored.ok() || !space.ok() || H5Tget_class(stored) != H5T_INTEGER) return 0;
  if (H5Sget_simple_extent_npoints(space) != 1) return 0;
  std::int64_t value = 0;
  return H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0 ? 0 : value;
}

}  // namespace

std::string sealed(std::string image) {
  if (const std::string_view content = without_seal(image); !content.empty()) image.resize(content.size());
  image += seal_of(image);
  return image;
}

std::string kind_of(const std::filesystem::path& path) {
  const Id file = open_image(checked_image(path, false), path.string());
  return root_schema(file) == 0 ? "" : root_text(file, "kind");
}

struct Writer::Handles {
  // Open as long as it may grow, so that the library keeps its last chunk unpacked.
  struct Column {
    Id dataset;
    hsize_t length = 0;
    bool narrow = false;  // i32
  };
  Id file, links, strings;
  std::map<std::string, Column> columns;  // after `file`: closed before it

  static hid_t checked(hid_t result, std::string_view name) {
    if (result < 0) throw Failure(fmt::format("HDF5 cannot write '{}'", name));
    return result;
  }

  Id make(const std::string& name, hid_t stored, const Id& space, const Id& creation) {
    H5Pset_obj_track_times(creation, false);  // equal content gives equal files
    return Id(checked(H5Dcreate2(file, name.c_str(), stored, space, links, creation, H5P_DEFAULT), name), H5Dclose);
  }

  // As one piece, deflated or contiguous; scalars have no shape.
  void write(const std::string& name, hid_t stored, hid_t in_memory_type, const std::vector<hsize_t>& shape,
             const void* data, bool deflated = false) {
    const Id space(
        checked(shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(int(shape.size()), shape.data(), nullptr),
                name),
        H5Sclose);
    const Id creation(checked(H5Pcreate(H5P_DATASET_CREATE), name), H5Pclose);
    if (deflated) {
      checked(H5Pset_chunk(creation, int(shape.size()), shape.data()), name);
      checked(H5Pset_deflate(creation, 1), name);
    }
    const Id dataset = make(name, stored, space, creation);
    const bool any = std::find(shape.begin(), shape.end(), hsize_t(0)) == shape.end();
    if (any) checked(H5Dwrite(dataset, in_memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), name);
  }

  template <class T>
  Column& append(const std::string& name, hid_t stored, hid_t in_memory_type, std::span<const T> values,
                 std::int64_t chunk) {
    const auto [place, is_new] = columns.try_emplace(name);
    Column& column = place->second;
    if (is_new) {
      const hsize_t none = 0, unlimited = H5S_UNLIMITED, size = hsize_t(chunk);
      const Id space(checked(H5Screate_simple(1, &none, &unlimited), name), H5Sclose);
      const Id creation(checked(H5Pcreate(H5P_DATASET_CREATE), name), H5Pclose);
      checked(H5Pset_chunk(creation, 1, &size), name);
      checked(H5Pset_deflate(creation, 1), name);
      column.dataset = make(name, stored, space, creation);
    }
    if (values.empty()) return column;
    const hsize_t begin = column.length, count = values.size(), end = begin + count;
    checked(H5Dset_extent(column.dataset, &end), name);
    const Id within(checked(H5Dget_space(column.dataset), name), H5Sclose);
    const Id memory(checked(H5Screate_simple(1, &count, nullptr), name), H5Sclose);
    checked(H5Sselect_hyperslab(within, H5S_SELECT_SET, &begin, nullptr, &count, nullptr), name);
    checked(H5Dwrite(column.dataset, in_memory_type, memory, within, H5P_DEFAULT, values.data()), name);
    column.length = end;
    return column;
  }

  // A column whose values no longer fit into 32 bits is written once more.
  void widen(const std::string& name, std::int64_t chunk) {
    const auto place = columns.find(name);
    if (place == columns.end() || !place->second.narrow) return;
    std::vector<std::int64_t> values(place->second.length);
    if (!values.empty()) {
      checked(H5Dread(place->second.dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
    }
    columns.erase(place);
    checked(H5Ldelete(file, name.c_str(), H5P_DEFAULT), name);
    append<std::int64_t>(name, H5T_STD_I64LE, H5T_NATIVE_INT64, values, chunk);
  }

  void strings_at(const std::string& name, std::span<const std::string> values, const std::vector<hsize_t>& shape) {
    std::vector<const char*> pointers;
    for (const std::string& value : values) {
      if (value.find('\0') != std::string::npos) throw Failure(fmt::format("'{}' holds a zero byte", name));
      pointers.push_back(value.c_str());
    }
    write(name, strings, strings, shape, pointers.data());
  }

  void attribute(const char* name, hid_t type, hid_t in_memory_type, const void* value) {
    const Id space(checked(H5Screate(H5S_SCALAR), name), H5Sclose);
    const Id made(checked(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), name), H5Aclose);
    checked(H5Awrite(made, in_memory_type, value), name);
  }
};

Writer::Writer(std::string_view kind) : handles_(std::make_unique<Handles>()) {
  be_quiet();
  handles_->file = Id(H5Fcreate(image_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, in_memory()), H5Fclose);
  if (!handles_->file.ok()) throw Failure("HDF5 cannot make a file in memory");
  handles_->links = Id(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(handles_->links, 1);
  H5Pset_char_encoding(handles_->links, H5T_CSET_UTF8);
  handles_->strings = string_type();
  handles_->attribute("graft_schema", H5T_STD_I32LE, H5T_NATIVE_INT64, &schema);
  const std::string kind_text(kind);
  const char* const pointer = kind_text.c_str();
  handles_->attribute("kind", handles_->strings, handles_->strings, &pointer);
}

Writer::~Writer() = default;

void Writer::text(const std::string& name, const std::string& value) {
  handles_->strings_at(name, {&value, 1}, {});
}

void Writer::texts(const std::string& name, std::span<const std::string> values) {
  handles_->strings_at(name, values, {hsize_t(values.size())});
}

void Writer::integers(const std::string& name, std::span<const std::int64_t> values, std::int64_t chunk) {
  const bool narrow =
      std::all_of(values.begin(), values.end(), [](std::int64_t value) { return std::in_range<std::int32_t>(value); });
  if (!narrow) handles_->widen(name, chunk);
  const bool is_new = !handles_->columns.contains(name);
  Handles::Column& column =
      handles_->append(name, narrow ? H5T_STD_I32LE : H5T_STD_I64LE, H5T_NATIVE_INT64, values, chunk);
  if (is_new) column.narrow = narrow;
}

void Writer::bytes(const std::string& name, std::span<const std::uint8_t> values, std::int64_t chunk) {
  handles_->append(name, H5T_STD_U8LE, H5T_NATIVE_UINT8, values, chunk);
}

void Writer::hashes(const std::string& name, std::span<const std::uint64_t> values, std::int64_t chunk) {
  handles_->append(name, H5T_STD_U64LE, H5T_NATIVE_UINT64, values, chunk);
}

void Writer::numbers(const std::string& name, std::span<const double> values, std::int64_t chunk) {
  handles_->append(name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values, chunk);
}

void Writer::array(const std::string& name, const base::Array& array) {
  constexpr std::int64_t large = 4096, largest_chunk = 1 << 28;  // elements; HDF5 takes chunks below 4 GiB
  std::int64_t elements = 1;
  for (const std::int64_t extent : array.shape) elements *= extent;
  assert(elements == std::int64_t(array.values.size()));
  handles_->write(name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {array.shape.begin(), array.shape.end()}, array.values.data(),
                  elements >= large && elements <= largest_chunk);
}

void Writer::group(const std::string& name) {
  const Id made(
      Handles::checked(H5Gcreate2(handles_->file, name.c_str(), handles_->links, H5P_DEFAULT, H5P_DEFAULT), name),
      H5Gclose);
}

void Writer::commit(const std::filesystem::path& path) {
  const auto check = [&](auto result) {
    if (result < 0) throw Failure(fmt::format("{}: HDF5 cannot finish the file", path.string()));
    return result;
  };
  handles_->columns.clear();
  check(H5Fflush(handles_->file, H5F_SCOPE_GLOBAL));
  std::string image(std::size_t(check(H5Fget_file_image(handles_->file, nullptr, 0))), '\0');
  check(H5Fget_file_image(handles_->file, image.data(), image.size()));
  base::replace_file(path, sealed(std::move(image)));
}

struct Reader::Handles {
  std::string place;
  std::uint64_t file_bytes = 0;
  Id file;

  [[noreturn]] void refuse(std::string_view why) const { throw UserError(place, why); }

  struct Opened {
    Id dataset, type, space;
    std::vector<std::int64_t> shape;
    std::size_t elements = 1;
  };

  // Every group on the way must be there: H5Lexists answers for the last part of a path only.
  bool exists(const std::string& name) const {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      if (H5Lexists(file, name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    }
    return H5Lexists(file, name.c_str(), H5P_DEFAULT) > 0;
  }

  Opened open(const std::string& name, H5T_class_t type_class, std::string_view of_what) const {
    if (!exists(name)) refuse(fmt::format("'{}' is missing", name));
    Opened opened;
    opened.dataset = Id(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!opened.dataset.ok()) refuse(fmt::format("'{}' cannot be read", name));
    opened.type = Id(H5Dget_type(opened.dataset), H5Tclose);
    opened.space = Id(H5Dget_space(opened.dataset), H5Sclose);
    if (!opened.type.ok() || !opened.space.ok()) refuse(fmt::format("'{}' cannot be read", name));
    if (H5Tget_class(opened.type) != type_class || (type_class == H5T_STRING && !is_variable_string(opened.type))) {
      refuse(fmt::format("'{}' does not hold {}", name, of_what));
    }
    const int rank = H5Sget_simple_extent_ndims(opened.space);
    const H5S_class_t space_class = H5Sget_simple_extent_type(opened.space);
    if (rank < 0 || (space_class != H5S_SIMPLE && space_class != H5S_SCALAR)) {
      refuse(fmt::format("'{}' cannot be read", name));
    }
    std::vector<hsize_t> extents(std::size_t(rank), 0);
    if (rank > 0) H5Sget_simple_extent_dims(opened.space, extents.data(), nullptr);
    opened.shape.assign(extents.begin(), extents.end());
    const std::uint64_t most = file_bytes * best_compression / std::max<std::size_t>(H5Tget_size(opened.type), 1);
    const bool any = std::find(extents.begin(), extents.end(), hsize_t(0)) == extents.end();
    for (const hsize_t extent : extents) {
      if (any && extent > most / opened.elements) {
        refuse(fmt::format("'{}' promises more than the file can hold", name));
      }
      opened.elements = any ? opened.elements * extent : 0;
    }
    return opened;
  }

  void read(const Opened& opened, hid_t type, void* into, const std::string& name, hid_t memory = H5S_ALL,
            hid_t selected = H5S_ALL) const {
    if (opened.elements == 0) return;
    // Space that was never written reads as zeros; our files have none.
    if (H5Dget_storage_size(opened.dataset) == 0 ||
        H5Dread(opened.dataset, type, memory, selected, H5P_DEFAULT, into) < 0) {
      refuse(fmt::format("'{}' cannot be read", name));
    }
  }

  Opened open_column(const std::string& name, H5T_class_t type_class, std::string_view of_what) const {
    Opened opened = open(name, type_class, of_what);
    if (opened.shape.size() != 1) refuse(fmt::format("'{}' is not a column", name));
    return opened;
  }

  template <class T>
  std::vector<T> column(const std::string& name, H5T_class_t type_class, hid_t type, std::string_view of_what,
                        Part part) const {
    const Opened opened = open_column(name, type_class, of_what);
    const std::int64_t all = std::int64_t(opened.elements), count = part.count < 0 ? all - part.first : part.count;
    assert(part.first >= 0 && count >= 0 && part.first + count <= all);
    std::vector<T> values;
    values.resize(std::size_t(count));
    if (count == all) {
      read(opened, type, values.data(), name);
    } else if (count > 0) {
      const hsize_t start = hsize_t(part.first), extent = hsize_t(count);
      const Id memory(H5Screate_simple(1, &extent, nullptr), H5Sclose);
      if (H5Sselect_hyperslab(opened.space, H5S_SELECT_SET, &start, nullptr, &extent, nullptr) < 0) {
        refuse(fmt::format("'{}' cannot be read", name));
      }
      read(opened, type, values.data(), name, memory, opened.space);
    }
    return values;
  }

  std::vector<std::string> strings(const std::string& name, std::size_t rank) const {
    const Opened opened = open(name, H5T_STRING, "texts");
    if (opened.shape.size() != rank)
      refuse(fmt::format("'{}' is not a {}", name, rank == 0 ? "single text" : "column"));
    const Id type = string_type();
    Strings read_strings(type, opened.space, opened.elements);
    read(opened, type, read_strings.data(), name);
    return read_strings.values();
  }
};

namespace {

// How people know the kinds of files.
struct Said {
  std::string_view kind, what, wanted;
};
const Said& said_of(std::string_view kind) {
  static constexpr Said all[] = {
      {"dataset", "a dataset", "a dataset; graft collect and graft import write them"},
      {"arrays", "a model or a checkpoint", "a model; graft train and graft adapt write them"},
      {"", "no file of graft", ""}};
  for (const Said& said : all) {
    if (said.kind == kind) return said;
  }
  return all[std::size(all) - 1];
}

}  // namespace

Reader::Reader(const std::filesystem::path& path, std::string_view kind) : handles_(std::make_unique<Handles>()) {
  handles_->place = path.string();
  const std::string image = checked_image(path, true);
  handles_->file_bytes = image.size();
  handles_->file = open_image(image, handles_->place);
  const std::int64_t found = root_schema(handles_->file);
  const std::string found_kind = root_text(handles_->file, "kind");
  if (found == 0 || found_kind != kind) {
    refuse(fmt::format("is {}; expected {}", said_of(found == 0 ? "" : found_kind).what, said_of(kind).wanted));
  }
  if (found != schema) {
    refuse(fmt::format("has schema {}, but this graft reads schema {}; use the graft that wrote it", found, schema));
  }
}

Reader::~Reader() = default;

void Reader::refuse(std::string_view why) const {
  handles_->refuse(why);
}

std::string Reader::text(const std::string& name) const {
  return handles_->strings(name, 0).front();
}

std::vector<std::string> Reader::texts(const std::string& name) const {
  return handles_->strings(name, 1);
}

std::vector<std::int64_t> Reader::integers(const std::string& name, Part part) const {
  return handles_->column<std::int64_t>(name, H5T_INTEGER, H5T_NATIVE_INT64, "integers", part);
}

std::vector<std::uint64_t> Reader::hashes(const std::string& name, Part part) const {
  return handles_->column<std::uint64_t>(name, H5T_INTEGER, H5T_NATIVE_UINT64, "integers", part);
}

std::vector<double> Reader::numbers(const std::string& name, Part part) const {
  return handles_->column<double>(name, H5T_FLOAT, H5T_NATIVE_DOUBLE, "numbers", part);
}

std::int64_t Reader::length(const std::string& name) const {
  if (!handles_->exists(name)) refuse(fmt::format("'{}' is missing", name));
  const Id dataset(H5Dopen2(handles_->file, name.c_str(), H5P_DEFAULT), H5Dclose);
  const Id space(dataset.ok() ? H5Dget_space(dataset) : -1, H5Sclose);
  if (!space.ok() || H5Sget_simple_extent_ndims(space) != 1) refuse(fmt::format("'{}' is not a column", name));
  return std::int64_t(H5Sget_simple_extent_npoints(space));
}

base::Array Reader::array(const std::string& name) const {
  const Handles::Opened opened = handles_->open(name, H5T_FLOAT, "numbers");
  base::Array array{opened.shape, std::vector<float>(opened.elements)};
  handles_->read(opened, H5T_NATIVE_FLOAT, array.values.data(), name);
  return array;
}

std::vector<std::string> Reader::names_in(const std::string& group) const {
  if (!handles_->exists(group)) refuse(fmt::format("'{}' is missing", group));
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  const Id opened(H5Gopen2(handles_->file, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!opened.ok() || H5Literate(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) {
    refuse(fmt::format("'{}' cannot be read", group));
  }
  return names;
}

}  // namespace graft::datasets::h5
