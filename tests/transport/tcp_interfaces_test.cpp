// Which interfaces become tcp rails, and how their addresses travel.
#include <gtest/gtest.h>

#include <algorithm>

#include "transports/tcp/interfaces.hpp"
#include "transports/tcp/tcp.hpp"

namespace polyrail::tcp {
namespace {

InterfaceAddress found(const std::string& device, const std::string& ip) {
  return {.device = device, .address = SocketAddress::parse(ip, "").value()};
}

const std::vector<InterfaceAddress>& host() {
  static const std::vector<InterfaceAddress> kHost = {
      found("lo", "127.0.0.1"),    found("lo", "::1"),          found("eth0", "10.0.0.5"),
      found("eth0", "fd00::5"),    found("eth0", "fe80::5"),    found("eth10", "10.1.0.5"),
      found("ib0", "fe80::6"),     found("ib0", "fd01::6"),     found("docker0", "172.17.0.1"),
      found("wlan0", "192.0.2.7"), found("wlan0", "192.0.2.8"),
  };
  return kHost;
}

// The rails that the option leaves, as "name address".
std::vector<std::string> rails(std::string_view option) {
  const auto filter = InterfaceFilter::parse(option);
  EXPECT_TRUE(filter.is_ok()) << filter.status().message();
  std::vector<std::string> result;
  for (const Rail& rail : select_rails(host(), filter.value())) {
    result.push_back(rail.name + " " + rail.address);
    EXPECT_EQ(rail.kind, RailKind::kTcp);
    EXPECT_TRUE(rail.curve.is_empty());
  }
  return result;
}
using Rails = std::vector<std::string>;

TEST(TcpInterfaces, OffersEachInterfaceOnceAndLoopbackLast) {
  EXPECT_EQ(rails(""), (Rails{"eth0 10.0.0.5", "eth10 10.1.0.5", "ib0 fd01::6",
                              "docker0 172.17.0.1", "wlan0 192.0.2.7", "lo 127.0.0.1"}));
}

TEST(TcpInterfaces, AreTakenByPrefixNameOrBlock) {
  EXPECT_EQ(rails("eth"), (Rails{"eth0 10.0.0.5", "eth10 10.1.0.5"}));
  EXPECT_EQ(rails("eth1"), (Rails{"eth10 10.1.0.5"}));
  EXPECT_EQ(rails("=eth1"), Rails{});
  EXPECT_EQ(rails("=eth0,ib"), (Rails{"eth0 10.0.0.5", "ib0 fd01::6"}));
  EXPECT_EQ(rails("10.0.0.0/8"), (Rails{"eth0 10.0.0.5", "eth10 10.1.0.5"}));
  EXPECT_EQ(rails("10.0.0.0/9,lo"), (Rails{"eth0 10.0.0.5", "eth10 10.1.0.5", "lo 127.0.0.1"}));
  EXPECT_EQ(rails("10.0.0.0/16"), (Rails{"eth0 10.0.0.5"}));
  EXPECT_EQ(rails("192.0.2.8"), (Rails{"wlan0 192.0.2.8"}));
  EXPECT_EQ(rails("0.0.0.0/0").size(), 5U);
}

TEST(TcpInterfaces, AreLeftOutByALeadingCaret) {
  EXPECT_EQ(rails("^docker0,wlan,^lo"), (Rails{"eth0 10.0.0.5", "eth10 10.1.0.5", "ib0 fd01::6"}));
  EXPECT_EQ(rails("^10.0.0.0/8,docker,wlan,lo"), (Rails{"eth0 fd00::5", "ib0 fd01::6"}));
}

TEST(TcpInterfaces, OfferIpv6BesideIpv4WhereItIsNamed) {
  EXPECT_EQ(rails("eth0.ipv6"), (Rails{"eth0 fd00::5"}));
  EXPECT_EQ(rails("=eth0,=eth0.ipv6"), (Rails{"eth0 10.0.0.5", "eth0.ipv6 fd00::5"}));
  EXPECT_EQ(rails("=eth0,fd00::/8"), (Rails{"eth0 10.0.0.5", "eth0.ipv6 fd00::5", "ib0 fd01::6"}));
  EXPECT_EQ(rails("fe80::/10"), (Rails{"eth0 fe80::5", "ib0 fe80::6"}));
}

TEST(TcpInterfaces, OfferNothingThatIsNotUsable) {
  auto down = found("eth0", "10.0.0.5");
  down.is_usable = false;
  const auto filter = InterfaceFilter::parse("");
  EXPECT_TRUE(select_rails({down}, filter.value()).empty());
}

TEST(TcpInterfaces, PreferLastingIpv6Addresses) {
  auto temporary = found("eth0", "fd00::1");
  temporary.is_temporary = true;
  const auto chosen = select_rails({found("eth0", "fe80::1"), temporary, found("eth0", "fd00::2")},
                                   InterfaceFilter::parse("").value());
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].address, "fd00::2");
}

TEST(TcpInterfaces, SayWhatIsWrongWithTheOption) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"eth0,", "names no interface"},
      {"=", "names no interface"},
      {"^", "names no interface"},
      {"10.0.0.0/33", "from 0 to 32"},
      {"10.0.0.0/x", "'x' is no number"},
      {"10.0.0/8", "'10.0.0' is no IP address"},
      {"fd00::/129", "from 0 to 128"},
      {"eth0,^eth1", "in front of the whole list"},
      {"eth 0", "neither the name"},
      {"10.0.0.0/", "is no number"},
      {"a-name-that-is-far-too-long", "neither"},
  };
  for (const auto& [option, part] : kWrong) {
    Options options;
    options.interfaces = option;
    const auto result = discover_tcp(options);
    ASSERT_FALSE(result.is_ok()) << option;
    const std::string text = result.status().message();
    EXPECT_NE(text.find("option interfaces"), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(TcpInterfaces, AreFoundOnThisHost) {
  Options options;
  options.interfaces = "=lo";
  const auto lo = discover_tcp(options);
  ASSERT_TRUE(lo.is_ok()) << lo.status().message();
  ASSERT_EQ(lo.value().size(), 1U);
  EXPECT_EQ(lo.value()[0].device, "lo");
  EXPECT_EQ(lo.value()[0].address, "127.0.0.1");

  options.interfaces = "=no-such-device";
  const auto none = discover_tcp(options);
  ASSERT_FALSE(none.is_ok());
  EXPECT_NE(none.status().message().find("lo (127.0.0.1)"), std::string::npos)
      << none.status().message();
}

TEST(TcpAddress, TravelsAsBytes) {
  for (const char* ip : {"10.0.0.5", "fd00::5", "fe80::5"}) {
    RailAddress address;
    address.socket = SocketAddress::parse(ip, "").value();
    address.socket.set_port(4711);
    address.host.fill(7);
    const auto back = RailAddress::from_bytes(address.to_bytes());
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(back.value().socket.text(), address.socket.text());
    EXPECT_EQ(back.value().host, address.host);
  }
}

TEST(TcpAddress, KnowsWhatCannotBeReached) {
  const auto at = [](const char* ip, std::uint8_t host_byte) {
    RailAddress address;
    address.socket = SocketAddress::parse(ip, "").value();
    address.socket.set_port(4711);
    address.host.fill(host_byte);
    return address;
  };
  EXPECT_TRUE(check_reachable(at("10.0.0.1", 1), at("10.9.0.2", 2)).is_ok());
  EXPECT_TRUE(check_reachable(at("fe80::1", 1), at("fe80::2", 2)).is_ok());
  EXPECT_TRUE(check_reachable(at("127.0.0.1", 1), at("127.0.0.1", 1)).is_ok());
  EXPECT_FALSE(check_reachable(at("127.0.0.1", 1), at("127.0.0.1", 2)).is_ok());
  EXPECT_FALSE(check_reachable(at("127.0.0.1", 1), at("10.0.0.1", 1)).is_ok());
  EXPECT_FALSE(check_reachable(at("10.0.0.1", 1), at("10.0.0.2", 1)).is_ok());
  EXPECT_FALSE(check_reachable(at("172.17.0.1", 1), at("172.17.0.1", 2)).is_ok());
  EXPECT_FALSE(check_reachable(at("10.0.0.1", 1), at("fd00::1", 2)).is_ok());
  EXPECT_FALSE(check_reachable(at("fd00::1", 1), at("fe80::1", 2)).is_ok());
}

}  // namespace
}  // namespace polyrail::tcp
