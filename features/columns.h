// The columns of tables' rows as numbers, by a schema that joins the columns of several tables by name and their values
// by value (codegen/space/table_schema.h). Any number of columns and of values.
#pragma once

#include "codegen/space/table_schema.h"
#include "features/encoding.h"

namespace graft::features {

inline constexpr std::size_t most_number_places = 16;  // further numbers have none: they are sizes, not names
inline constexpr std::size_t most_word_places = 64;    // more words are hashed twice, into this many buckets each

// For each column of the schema: its number and that number's logarithm, if it has numbers; a place for each value, if
// these are words or few numbers (a column of few numbers may be a size or a name: a model sees both). A number that a
// row lacks is the column's mean; a word that the schema lacks has no place. Columns whose words name single rows are
// left out: rows are known by their identity (Encoded::identities). The first feature counts the row's known columns.
// All 0 for rows that are not of tables. Version 3.
Encoding columns(codegen::TableSchema schema = {});

}  // namespace graft::features
