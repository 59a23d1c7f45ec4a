// Handshake and frames as bytes, without sockets.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/handshake.hpp"

namespace polyrail::bootstrap {
namespace {

using testing::HasSubstr;

class Handshake : public testing::Test {
 protected:
  const Key key_ = random_key().value();
  const Claim root_ = own_claim(0, 4);
  const Claim member_ = own_claim(3, 4);
  const std::string hello_ = make_hello(random_nonce().value());
  const std::string challenge_ = make_challenge(key_, hello_, random_nonce().value(), root_);
  const std::string reply_ = make_reply(key_, hello_, challenge_, member_);
};

TEST_F(Handshake, ConvincesBothSidesOfTheKeyAndTheClaims) {
  EXPECT_EQ(hello_.size(), kHelloBytes);
  EXPECT_EQ(challenge_.size(), kChallengeBytes);
  EXPECT_EQ(reply_.size(), kReplyBytes);
  EXPECT_EQ(check_challenge(key_, hello_, challenge_), root_);
  EXPECT_EQ(check_reply(key_, hello_, challenge_, reply_), member_);
}

TEST_F(Handshake, FailsWithAnotherKey) {
  const Key other = random_key().value();
  EXPECT_FALSE(check_challenge(other, hello_, challenge_).has_value());
  EXPECT_FALSE(check_reply(other, hello_, challenge_, reply_).has_value());
}

TEST_F(Handshake, FailsWhenAnyBitIsChanged) {
  for (std::size_t bit = 0; bit < 8 * kChallengeBytes; ++bit) {
    std::string changed = challenge_;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(check_challenge(key_, hello_, changed).has_value()) << bit;
    EXPECT_FALSE(check_reply(key_, hello_, changed, reply_).has_value()) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * kReplyBytes; ++bit) {
    std::string changed = reply_;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(check_reply(key_, hello_, challenge_, changed).has_value()) << bit;
  }
}

TEST_F(Handshake, CannotBeUsedAgainOrSentBack) {
  const std::string other_hello = make_hello(random_nonce().value());
  EXPECT_FALSE(check_challenge(key_, other_hello, challenge_).has_value());
  const std::string other = make_challenge(key_, hello_, random_nonce().value(), root_);
  EXPECT_FALSE(check_reply(key_, hello_, other, reply_).has_value());
  // The root's own claim and proof are no reply.
  const std::string echo = challenge_.substr(kHelloBytes);
  ASSERT_EQ(echo.size(), kReplyBytes);
  EXPECT_FALSE(check_reply(key_, hello_, challenge_, echo).has_value());
}

TEST_F(Handshake, RecognisesOtherProtocolsByTheirFirstBytes) {
  EXPECT_TRUE(may_be_hello(""));
  EXPECT_TRUE(may_be_hello(hello_.substr(0, 5)));
  EXPECT_TRUE(may_be_hello(hello_));
  EXPECT_FALSE(may_be_hello("GET / HTTP/1.1\r\n"));
  EXPECT_FALSE(may_be_hello("\x16\x03\x01"));
  EXPECT_FALSE(may_be_hello(challenge_));
  EXPECT_FALSE(may_be_challenge(hello_));
}

TEST(Claims, VersionsMustAgreeAndTheTextShowsBoth) {
  Claim self = own_claim(0, 2);
  Claim other = own_claim(1, 2);
  EXPECT_TRUE(check_versions(self, other).is_ok());
  self.version = 102;
  other.version = 20304;
  other.host = "far\naway";
  const Status status = check_versions(self, other);
  EXPECT_EQ(status.code(), StatusCode::kInvalidUsage);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 (host "));
  EXPECT_THAT(status.message(), HasSubstr("runs Polyrail 0.1.2"));
  EXPECT_THAT(status.message(), HasSubstr("rank 1 (host far?away, process "));
  EXPECT_THAT(status.message(), HasSubstr("runs Polyrail 2.3.4"));
}

std::vector<Frame> examples() {
  return {{FrameKind::kAccepted, 0, "", ""},
          {FrameKind::kMessage, 4000, "rails", std::string(3000, 'm')},
          {FrameKind::kMessage, 1, std::string(200, 'p'), ""},
          {FrameKind::kGathered, 0, "rails", encode_gathered({"a", "", "ccc"})},
          {FrameKind::kWelcome, 0, "", ""}};
}

TEST(FrameReader, CutsAStreamIntoFramesWhereverItIsBroken) {
  std::string stream;
  for (const Frame& frame : examples()) stream += encode(frame);
  for (std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, stream.size()}) {
    FrameReader reader(3);
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      ASSERT_TRUE(reader.feed(std::string_view(stream).substr(at, piece)).is_ok());
      while (reader.has_frame()) frames.push_back(reader.take());
    }
    EXPECT_EQ(frames, examples());
  }
}

TEST(FrameReader, RefusesWhatCannotBe) {
  const std::string good = encode({FrameKind::kMessage, 0, "rails", "x"});
  const auto message = [&](std::size_t at, std::string_view bytes) {
    std::string changed = good;
    changed.replace(at, bytes.size(), bytes);
    FrameReader reader(3);
    const Status status = reader.feed(changed);
    EXPECT_EQ(reader.feed(good), status);  // and never recovers
    return status.message();
  };
  EXPECT_THAT(message(0, std::string(1, '\0')), HasSubstr("unknown kind 0"));
  EXPECT_THAT(message(0, "\x06"), HasSubstr("unknown kind 6"));
  EXPECT_THAT(message(2, "\x01"), HasSubstr("unknown kind 4"));
  EXPECT_THAT(message(1, "\xff"), HasSubstr("phase is too long"));
  EXPECT_THAT(message(8, "\xff\xff\xff\xff\xff"), HasSubstr("at most 16777216"));
  EXPECT_THAT(message(0, "\x01"), HasSubstr("at most 0"));
}

TEST(Failure, CarriesCodeAndText) {
  const Status status(StatusCode::kTimeout, "rank 3 did not come");
  FrameReader reader(3);
  ASSERT_TRUE(reader.feed(encode_failure(status)).is_ok());
  EXPECT_EQ(decode_failure(reader.take().payload), status);
  for (const char* payload : {"", "\x01", "\x07text", "\x0a", "\xff"}) {
    EXPECT_EQ(decode_failure(payload).code(), StatusCode::kInternalError);
  }
  const Status zero = decode_failure(std::string_view("\0text", 5));
  EXPECT_EQ(zero.code(), StatusCode::kInternalError);
  const Status endless(StatusCode::kTimeout, std::string(1 << 20, 'x'));
  FrameReader other(3);
  EXPECT_TRUE(other.feed(encode_failure(endless)).is_ok());
}

TEST(Gathered, IsRefusedWhenLengthsDoNotAddUp) {
  const std::string good = encode_gathered({"a", "", "ccc"});
  EXPECT_THAT(decode_gathered(good, 3).value(), testing::ElementsAre("a", "", "ccc"));
  EXPECT_FALSE(decode_gathered(good, 2).is_ok());
  EXPECT_FALSE(decode_gathered(good, 4).is_ok());
  EXPECT_FALSE(decode_gathered(good + "x", 3).is_ok());
  EXPECT_FALSE(decode_gathered(good.substr(0, good.size() - 1), 3).is_ok());
  std::string changed = good;
  changed[15] = '\xff';  // an enormous second part
  EXPECT_FALSE(decode_gathered(changed, 3).is_ok());
}

TEST(FrameReader, SurvivesRandomStreams) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::string good;
  for (const Frame& frame : examples()) good += encode(frame);
  for (int i = 0; i < 5000; ++i) {
    std::string stream = good;
    for (int j = 0; j < 4; ++j) stream[random() % stream.size()] = static_cast<char>(random());
    FrameReader reader(3);
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t piece = 1 + random() % 900;
      if (!reader.feed(std::string_view(stream).substr(at, piece)).is_ok()) break;
      at += piece;
      while (reader.has_frame()) {
        const Frame frame = reader.take();
        (void)decode_failure(frame.payload);
        (void)decode_gathered(frame.payload, 3);
      }
    }
  }
}

}  // namespace
}  // namespace polyrail::bootstrap
