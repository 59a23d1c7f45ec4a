// The option table: every row can be set, printed and read from all three places.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <polyrail/options.hpp>

namespace polyrail {
namespace {

class Environment : public testing::Test {
 protected:
  void set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    names_.push_back(name);
  }
  void TearDown() override {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

TEST(Options, DefaultsAreWhatTheTableSays) {
  const Options options;
  for (const OptionRow& row : option_rows()) {
    EXPECT_EQ(option_text(options, row.name), row.fallback) << row.name;
    EXPECT_FALSE(row.sentence.empty()) << row.name;
  }
}

TEST(Options, EveryRowCanBeSetToItsDefaultText) {
  for (const OptionRow& row : option_rows()) {
    Options options;
    EXPECT_TRUE(set_option(options, row.name, row.fallback).is_ok()) << row.name;
    EXPECT_EQ(options, Options{}) << row.name;
  }
}

TEST(Options, WrongValuesAreRefusedAndChangeNothing) {
  Options options;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"spin_us", "-2"},
                                                        {"spin_us", "ten"},
                                                        {"spin_us", "10us"},
                                                        {"spin_us", ""},
                                                        {"spin_us", "99999999999999999999"},
                                                        {"progress", "soon"},
                                                        {"split_by_measurement", "perhaps"},
                                                        {"log_level", "loud"},
                                                        {"virtual_rails", "0"}}) {
    const Status status = set_option(options, name, value);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name << "=" << value;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_EQ(options, Options{});
}

TEST(Options, WrongValuesInTheStructAreFound) {
  Options options;
  EXPECT_TRUE(check_options(options).is_ok());
  options.progress = "bogus";
  EXPECT_NE(check_options(options).message().find("progress"), std::string::npos);
  options = {};
  options.tcp_sockets = 0;
  EXPECT_NE(check_options(options).message().find("tcp_sockets"), std::string::npos);
}

TEST(Options, UnknownNamesAreAnsweredWithTheNearest) {
  Options options;
  const Status status = set_option(options, "spin_uss", "1");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'spin_us'"), std::string::npos) << status.message();
}

TEST_F(Environment, VariablesOverrideTheFile) {
  const std::string path = testing::TempDir() + "polyrail_options_test.conf";
  std::ofstream(path) << "# a comment\nspin_us = 7\n\nalgorithm = ring   # another\n";
  set("POLYRAIL_CONFIG", path);
  set("POLYRAIL_SPIN_US", "9");
  const Result<Options> options = options_from_environment();
  std::remove(path.c_str());
  ASSERT_TRUE(options.is_ok()) << options.status().message();
  EXPECT_EQ(options.value().spin_us, 9);
  EXPECT_EQ(options.value().algorithm, "ring");
}

TEST_F(Environment, ErrorsNameTheLineOrTheVariable) {
  const std::string path = testing::TempDir() + "polyrail_options_test_bad.conf";
  std::ofstream(path) << "spin_us = 7\nnonsense\n";
  set("POLYRAIL_CONFIG", path);
  const Result<Options> from_file = options_from_environment();
  std::remove(path.c_str());
  ASSERT_FALSE(from_file.is_ok());
  EXPECT_NE(from_file.status().message().find(":2:"), std::string::npos)
      << from_file.status().message();

  set("POLYRAIL_CONFIG", "");
  set("POLYRAIL_SPINN_US", "3");
  const Result<Options> from_variable = options_from_environment();
  ASSERT_FALSE(from_variable.is_ok());
  EXPECT_NE(from_variable.status().message().find("POLYRAIL_SPINN_US"), std::string::npos);
}

}  // namespace
}  // namespace polyrail
