// Host identity: the same everywhere on a machine, never the same on two.
#include "src/base/host_identity.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace polyrail {
namespace {

class HostIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "polyrail-identity-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string file_with(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    return root_ / name;
  }
  std::filesystem::path root_;
};

TEST_F(HostIdentityTest, IsTheSameAgain) {
  EXPECT_FALSE(host_identity().empty());
  EXPECT_EQ(host_identity(), host_identity());
}

TEST_F(HostIdentityTest, DiffersWithTheBootId) {
  const std::string one = file_with("one", "9a9a5754-bf5f-4cd9-957d-a0b6eb8ad555\n");
  const std::string same = file_with("same", "9a9a5754-bf5f-4cd9-957d-a0b6eb8ad555\n");
  const std::string other = file_with("other", "00000000-bf5f-4cd9-957d-a0b6eb8ad555\n");
  EXPECT_EQ(host_identity(one, "facts"), host_identity(same, "facts"));
  EXPECT_NE(host_identity(one, "facts"), host_identity(other, "facts"));
}

TEST_F(HostIdentityTest, DiffersWithTheMachine) {
  const std::string one = file_with("one", "9a9a5754-bf5f-4cd9-957d-a0b6eb8ad555\n");
  EXPECT_NE(host_identity(one, "x86_64 cpus 0-1"), host_identity(one, "x86_64 cpus 0-3"));
}

TEST_F(HostIdentityTest, FallsBackToTheNameOfTheHost) {
  const std::string identity = host_identity(root_ / "missing", "facts");
  EXPECT_TRUE(identity.starts_with("name ")) << identity;
  EXPECT_EQ(identity, host_identity(file_with("empty", ""), "facts"));
}

}  // namespace
}  // namespace polyrail
