// The binary and the text form of a unique id.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <polyrail/bootstrap.hpp>

#include "src/bootstrap/bytes.hpp"

namespace polyrail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kBytes = UniqueId::kBytes;
using Bytes = std::array<std::uint8_t, kBytes>;

UniqueId example() {
  UniqueId id;
  id.addresses = {"10.0.0.1:4711", "[fd00::2]:4712", "[fe80::1%eth0]:4713"};
  for (std::size_t i = 0; i < id.key.size(); ++i) id.key[i] = static_cast<std::uint8_t>(200 + i);
  return id;
}

std::string key_digits(const UniqueId& id) {
  return bootstrap::to_hex({reinterpret_cast<const char*>(id.key.data()), id.key.size()});
}

Result<UniqueId> from(const Bytes& bytes) {
  return UniqueId::from_bytes(bytes.data(), bytes.size());
}

TEST(UniqueId, ComesBackFromBytesAndText) {
  const UniqueId id = example();
  const auto bytes = id.to_bytes();
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
  ASSERT_TRUE(from(bytes.value()).is_ok()) << from(bytes.value()).status().message();
  EXPECT_EQ(from(bytes.value()).value(), id);

  const auto text = id.to_text();
  ASSERT_TRUE(text.is_ok());
  EXPECT_THAT(text.value(), testing::StartsWith("polyrail1:"));
  EXPECT_EQ(UniqueId::from_text(text.value()).value(), id);
  EXPECT_EQ(UniqueId::from_text("  " + text.value() + "\r\n").value(), id);
}

TEST(UniqueId, HasRoomForManyAddressesAndSaysWhenItIsFull) {
  UniqueId id = example();
  id.addresses.clear();
  while (id.to_bytes().is_ok() || id.addresses.empty()) {
    id.addresses.push_back("10.0.0." + std::to_string(id.addresses.size()) + ":4711");
  }
  EXPECT_EQ(id.addresses.size(), 30u);
  EXPECT_THAT(id.to_bytes().status().message(), HasSubstr("30 addresses need 258 bytes; 256"));
  id.addresses.pop_back();
  EXPECT_EQ(from(id.to_bytes().value()).value(), id);
  EXPECT_LT(id.to_text().value().size(), 640u);  // what the C API promises
  EXPECT_EQ(UniqueId::from_text(id.to_text().value()).value(), id);
}

TEST(UniqueId, RefusesToBeMadeOfWhatIsNoAddress) {
  UniqueId id = example();
  id.addresses = {"host:1"};
  EXPECT_THAT(id.to_bytes().status().message(), HasSubstr("'host:1'"));
  id.addresses = {};
  EXPECT_THAT(id.to_text().status().message(), HasSubstr("no address"));
}

TEST(UniqueId, NamesEachWayOfBeingWrong) {
  const Bytes good = example().to_bytes().value();
  const auto message = [](const Bytes& bytes) { return from(bytes).status().message(); };

  EXPECT_THAT(message(Bytes{}), HasSubstr("all bytes are zero"));
  Bytes bytes = good;
  bytes[0] = 'X';
  EXPECT_THAT(message(bytes), HasSubstr("no unique id"));
  bytes = good;
  bytes[4] = 9;
  EXPECT_THAT(message(bytes), AllOf(HasSubstr("version 9"), HasSubstr("version 1")));
  bytes = good;
  bytes[20] ^= 1;
  EXPECT_THAT(message(bytes), HasSubstr("checksum"));
  bytes = good;
  bytes[255] = 1;
  EXPECT_THAT(message(bytes), HasSubstr("more behind it"));
  EXPECT_THAT(UniqueId::from_bytes(good.data(), 100).status().message(), HasSubstr("are 100"));
  EXPECT_THAT(UniqueId::from_bytes(nullptr, kBytes).status().message(), HasSubstr("null"));
}

TEST(UniqueId, NamesEachWayOfBeingWrongAsText) {
  const std::string good = example().to_text().value();
  const auto message = [](std::string_view text) {
    return UniqueId::from_text(text).status().message();
  };
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("hello"), HasSubstr("does not begin with 'polyrail1:'"));
  EXPECT_THAT(message("polyrail2:" + good.substr(10)), HasSubstr("not of version 1"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("pairs of hexadecimal digits"));
  EXPECT_THAT(message(good.substr(0, good.size() - 2)), HasSubstr("cut off"));
  EXPECT_THAT(message(good.substr(0, 40)), HasSubstr("cut off after 15 bytes"));
  EXPECT_THAT(message(good + "00ff"), HasSubstr("more behind it"));
  EXPECT_THAT(message(good + std::string(1000, '0')), HasSubstr("too long"));
  std::string damaged = good;
  damaged[60] = damaged[60] == '0' ? '1' : '0';
  EXPECT_THAT(message(damaged), HasSubstr("checksum"));
}

TEST(UniqueId, NoticesEveryFlippedBitAndNeverTellsTheKey) {
  const UniqueId id = example();
  const Bytes good = id.to_bytes().value();
  for (std::size_t bit = 0; bit < 8 * kBytes; ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    const Result<UniqueId> parsed = from(bytes);
    ASSERT_FALSE(parsed.is_ok()) << "bit " << bit;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(parsed.status().message(), Not(HasSubstr(key_digits(id).substr(0, 16))));
  }
}

TEST(UniqueId, SurvivesRandomBytes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Bytes good = example().to_bytes().value();
  const std::string good_text = example().to_text().value();
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    const int change_count = 1 + static_cast<int>(random() % 8);
    for (int j = 0; j < change_count; ++j) {
      bytes[random() % kBytes] = static_cast<std::uint8_t>(random());
    }
    EXPECT_EQ(from(bytes).is_ok(), bytes == good);
    std::string text = good_text.substr(0, 10 + random() % good_text.size());
    text[random() % text.size()] = static_cast<char>(random());
    if (const auto parsed = UniqueId::from_text(text); parsed.is_ok()) {
      EXPECT_EQ(parsed.value(), example());
    }
  }
}

}  // namespace
}  // namespace polyrail
