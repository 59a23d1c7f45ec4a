// Addresses as text, and the choice of interfaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/address.hpp"
#include "src/base/interfaces.hpp"

namespace polyrail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Address, PrintsWhatItParses) {
  for (const char* text : {"10.0.0.1:4711", "255.255.255.255:65535", "[fd00::2]:1",
                           "[fe80::1%eth0]:4711", "[::1]:80", "127.0.0.1:1"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_TRUE(address.is_ok()) << text;
    EXPECT_EQ(to_text(address.value()), text);
  }
  EXPECT_EQ(to_text(parse_address("[FD00:0:0::0002]:9").value()), "[fd00::2]:9");
}

TEST(Address, RefusesOtherTexts) {
  for (const char* text : {"",
                           ":",
                           "10.0.0.1",
                           "10.0.0.1:",
                           "10.0.0.1:0",
                           "10.0.0.1:65536",
                           "10.0.0.1:1x",
                           "10.0.0:1",
                           "host:1",
                           "fd00::2:1",
                           "[10.0.0.1]:1",
                           "[fd00::2]",
                           "[fd00::2%eth0]:1",
                           "[fe80::1%]:1",
                           "[fe80::1%a b]:1",
                           "[fe80::1%0123456789abcdef]:1",
                           "10.0.0.1%eth0:1",
                           "[]:1",
                           "[:1",
                           "10.0.0.1:-1",
                           " 10.0.0.1:1"}) {
    const Result<Address> address = parse_address(text);
    EXPECT_FALSE(address.is_ok()) << text;
    EXPECT_THAT(address.status().message(), HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(Address, SurvivesTheWayThroughTheSystemsForm) {
  for (const char* text : {"10.0.0.1:4711", "[fd00::2]:1", "[fe80::1%lo]:4711"}) {
    const Address address = parse_address(text).value();
    const Result<SocketAddress> socket_address = to_socket_address(address);
    ASSERT_TRUE(socket_address.is_ok());
    EXPECT_EQ(from_socket_address(socket_address.value().get()), address);
  }
  const auto unknown = to_socket_address(parse_address("[fe80::1%nosuch0]:1").value());
  EXPECT_THAT(unknown.status().message(), HasSubstr("no interface 'nosuch0'"));
}

TEST(Address, KnowsWhatKindItIs) {
  EXPECT_TRUE(parse_ip("127.8.0.1").value().is_loopback());
  EXPECT_TRUE(parse_ip("::1").value().is_loopback());
  EXPECT_FALSE(parse_ip("128.0.0.1").value().is_loopback());
  EXPECT_TRUE(parse_ip("169.254.3.4").value().is_link_local());
  EXPECT_TRUE(parse_ip("fe80::1").value().is_link_local());
  EXPECT_FALSE(parse_ip("fd00::1").value().is_link_local());
  EXPECT_TRUE(parse_ip("0.0.0.0").value().is_any());
  EXPECT_TRUE(parse_ip("::").value().is_any());
  const IpAddress net = parse_ip("10.1.128.0").value();
  EXPECT_TRUE(parse_ip("10.1.255.1").value().is_within(net, 17));
  EXPECT_FALSE(parse_ip("10.1.127.1").value().is_within(net, 17));
  EXPECT_TRUE(parse_ip("1.2.3.4").value().is_within(net, 0));
  EXPECT_FALSE(parse_ip("fd00::1").value().is_within(net, 0));
}

class Interfaces : public testing::Test {
 protected:
  static InterfaceAddress make(const char* interface, const char* ip, bool is_running = true) {
    const IpAddress parsed = parse_ip(ip).value();
    return {interface, parsed, 24, parsed.is_loopback(), is_running};
  }
  // The chosen ones as "name ip", or the text of the failure.
  std::vector<std::string> choose(std::string_view option) const {
    const auto chosen = select_addresses(all_, option);
    if (!chosen.is_ok()) return {chosen.status().message()};
    std::vector<std::string> texts;
    for (const InterfaceAddress& address : chosen.value()) {
      texts.push_back(address.interface + " " + to_text(address.ip));
    }
    return texts;
  }

  std::vector<InterfaceAddress> all_ = {
      make("lo", "127.0.0.1"),        make("eth0", "10.0.0.1"),     make("eth1", "10.1.0.1"),
      make("eth1", "fd00::1"),        make("eth10", "192.168.0.1"), make("docker0", "172.17.0.1"),
      make("eth9", "10.9.0.1", false)};
};

TEST_F(Interfaces, AllThatRunAreUsedWithoutTheOption) {
  EXPECT_THAT(choose(""), ElementsAre("eth0 10.0.0.1", "eth1 10.1.0.1", "eth1 fd00::1",
                                      "eth10 192.168.0.1", "docker0 172.17.0.1"));
}

TEST_F(Interfaces, AreChosenByPrefixNameOrBlock) {
  EXPECT_THAT(choose("eth1"), ElementsAre("eth1 10.1.0.1", "eth1 fd00::1", "eth10 192.168.0.1"));
  EXPECT_THAT(choose("=eth1"), ElementsAre("eth1 10.1.0.1", "eth1 fd00::1"));
  EXPECT_THAT(choose("10.0.0.0/8"), ElementsAre("eth0 10.0.0.1", "eth1 10.1.0.1"));
  EXPECT_THAT(choose("fd00::/16,=eth0"), ElementsAre("eth0 10.0.0.1", "eth1 fd00::1"));
  EXPECT_THAT(choose("172.17.0.1"), ElementsAre("docker0 172.17.0.1"));
}

TEST_F(Interfaces, AreExcludedByALeadingCaret) {
  EXPECT_THAT(choose("^docker0,eth1"), ElementsAre("eth0 10.0.0.1"));
  EXPECT_THAT(choose("^docker0,^10.0.0.0/8"), ElementsAre("eth1 fd00::1", "eth10 192.168.0.1"));
}

TEST_F(Interfaces, OfferLoopbackOnlyByNameOrAsTheLastResort) {
  EXPECT_THAT(choose("lo,eth0"), ElementsAre("lo 127.0.0.1", "eth0 10.0.0.1"));
  EXPECT_THAT(choose("^docker,eth"), ElementsAre("lo 127.0.0.1"));
  all_.resize(1);
  EXPECT_THAT(choose(""), ElementsAre("lo 127.0.0.1"));
}

TEST_F(Interfaces, FailuresSayWhatThereIsToChooseFrom) {
  EXPECT_THAT(choose("ib0"),
              ElementsAre(AllOf(HasSubstr("'ib0' leaves no address"), HasSubstr("eth0 10.0.0.1"),
                                HasSubstr("eth9 10.9.0.1 (down)"))));
}

TEST_F(Interfaces, RefuseOptionsThatCannotBeMeant) {
  EXPECT_THAT(choose("eth0,,eth1"), ElementsAre(HasSubstr("an item is empty")));
  EXPECT_THAT(choose("eth0,^eth1"), ElementsAre(HasSubstr("^ stands at the beginning")));
  EXPECT_THAT(choose("10.0.0.0/33"), ElementsAre(HasSubstr("prefix length from 0 to 32")));
  EXPECT_THAT(choose("10.0.0/8"), ElementsAre(HasSubstr("no block of addresses")));
  EXPECT_THAT(choose("^"), ElementsAre(HasSubstr("an item is empty")));
}

TEST(InterfaceAddresses, IncludeLoopback) {
  const auto all = interface_addresses();
  ASSERT_TRUE(all.is_ok()) << all.status().message();
  bool has_loopback = false;
  for (const InterfaceAddress& address : all.value()) {
    if (address.interface == "lo" && !address.ip.is_ipv6) {
      has_loopback = true;
      EXPECT_TRUE(address.is_loopback);
      EXPECT_EQ(address.prefix_bits, 8);
    }
  }
  EXPECT_TRUE(has_loopback);
}

}  // namespace
}  // namespace polyrail
