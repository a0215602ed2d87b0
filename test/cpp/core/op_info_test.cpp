#include <taeda/aten/core/library.h>
#include <taeda/aten/core/op_info.h>

#include <gtest/gtest.h>

namespace taeda {
namespace {

// The parser of user operators and codegen read the same grammar.
TEST(OpInfo, ParsedSchemasEqualGeneratedTables) {
  int count = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    if (op->info->record->family == Family::User) continue;
    ParsedSchema parsed = parse_schema(op->schema);
    ASSERT_EQ(parsed.arguments, op->info->arguments) << op->schema;
    ASSERT_EQ(parsed.values.size(),
              size_t(op->info->arguments) + op->info->results)
        << op->schema;
    for (size_t i = 0; i < parsed.values.size(); ++i) {
      EXPECT_TRUE(parsed.values[i] == op->info->values[i])
          << op->schema << ", part " << i;
    }
    ++count;
  }
  EXPECT_GT(count, 1700);
}

TEST(OpInfo, WrittenArgumentsComeFirstAmongResults) {
  int count = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    if (op->info->record->family == Family::User) continue;
    int written = 0, first = -1;
    for (size_t i = 0; i < op->info->arguments; ++i) {
      if (!op->info->values[i].has(ArgInfo::kWritten)) continue;
      if (first < 0) first = static_cast<int>(i);
      ++written;
    }
    bool functional = op->info->form == Form::Functional;
    if (!functional) {
      EXPECT_GT(written, 0) << op->schema;
    }
    if (op->written_count > 0) {
      EXPECT_EQ(op->written_first, first) << op->schema;
    }
    count += written > 0;
  }
  EXPECT_GT(count, 500);
}

TEST(OpInfo, UserOperatorsHaveTheirSchema) {
  Library lib("op_info_test");
  OperatorEntry& op = lib.def(
      "f.over(Tensor(a!) x, int[2] size=[1, 2], *, str? mode=\"a,b)\") -> "
      "(Tensor(a!), float y)");
  ASSERT_EQ(op.info->arguments, 3);
  ASSERT_EQ(op.info->results, 2);
  const ArgInfo* v = op.info->values;
  EXPECT_EQ(name_of(v[0], op.schema), "x");
  EXPECT_TRUE(v[0].has(ArgInfo::kWritten));
  EXPECT_EQ(v[0].alias, 1);
  EXPECT_EQ(v[1].list_size, 2);
  EXPECT_EQ(default_of(v[1], op.schema), "[1, 2]");
  EXPECT_TRUE(v[2].has(ArgInfo::kKeywordOnly));
  EXPECT_TRUE(v[2].has(ArgInfo::kOptional));
  EXPECT_EQ(default_of(v[2], op.schema), "\"a,b)\"");
  EXPECT_EQ(name_of(v[4], op.schema), "y");
  EXPECT_EQ(v[4].type, ValueType::Float);
}

TEST(OpInfo, MalformedSchemasNameThePlace) {
  for (const char* text : {"f(Tensor x -> Tensor",
                           "f(Tensor x) Tensor",
                           "f(Tensor x,) -> Tensor",
                           "f(int[300] x) -> Tensor",
                           "f(int x=) -> Tensor",
                           "f(Tensor x) -> Tensor behind it"}) {
    try {
      parse_schema(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("at character"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace taeda
