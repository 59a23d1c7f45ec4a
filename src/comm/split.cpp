#include "src/comm/split.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>
#include <vector>

#include <polyrail/communicator.hpp>

namespace polyrail {
namespace {

struct Member {
  int key = 0;
  int rank = 0;  // of the parent
};

// What a rank says in the first round: "color key", or "!code sentence" if it cannot take part.
std::string wish_text(const Status& own, int color, int key) {
  if (own.is_ok()) return std::to_string(color) + " " + std::to_string(key);
  return "!" + std::to_string(static_cast<int>(own.code())) + " " + own.message();
}

Status failure_of(int rank, const std::string& text) {
  int code = static_cast<int>(StatusCode::kInternalError);
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), code);
  const std::string_view sentence =
      std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
  return {static_cast<StatusCode>(code),
          "split: rank " + std::to_string(rank) + ":" + std::string(sentence)};
}

Status check_wish(int color, const Options& options) {
  if (color < 0 && color != Communicator::kNoColor) {
    return {StatusCode::kInvalidArgument, "the color " + std::to_string(color) + " is negative"};
  }
  return check_options(options);
}

// The ranks with this color, in their new order.
Result<std::vector<Member>> find_group(const std::vector<std::string>& wishes, int color) {
  std::vector<Member> group;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const std::string& text = wishes[i];
    const int rank = static_cast<int>(i);
    if (text.starts_with('!')) return failure_of(rank, text);
    int other_color = 0;
    Member member{0, rank};
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, other_color);
    if (first.ec != std::errc() || first.ptr == end ||
        std::from_chars(first.ptr + 1, end, member.key).ec != std::errc()) {
      return Status(StatusCode::kInternalError,
                    "split: rank " + std::to_string(rank) + " sent no color and key");
    }
    if (other_color == color) group.push_back(member);
  }
  std::sort(group.begin(), group.end(), [](const Member& a, const Member& b) {
    return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
  });
  return group;
}

// What the first rank of a group hands out: the text of an id, or "!code sentence".
std::string make_handout(const Options& options) {
  const Result<UniqueId> id = make_unique_id(options);
  if (!id.is_ok()) return wish_text(id.status(), 0, 0);
  const Result<std::string> text = id.value().to_text();
  return text.is_ok() ? text.value() : wish_text(text.status(), 0, 0);
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> split(Bootstrap& parent, int color, int key,
                                         const Options& options) {
  const Status own = check_wish(color, options);
  const Result<std::vector<std::string>> wishes =
      parent.all_gather("colors of a split", wish_text(own, color, key));
  if (!wishes.is_ok()) return wishes.status();
  const Result<std::vector<Member>> found = find_group(wishes.value(), color);
  if (!found.is_ok()) return found.status();
  const std::vector<Member>& group = found.value();
  const bool is_member = color != Communicator::kNoColor;
  const int leader = group.front().rank;
  // A group of one meets nobody, so it needs no id.
  const bool needs_id = is_member && group.size() > 1;
  const Result<std::vector<std::string>> handouts = parent.all_gather(
      "unique ids of a split",
      needs_id && leader == parent.rank() ? make_handout(options) : std::string());
  if (!handouts.is_ok()) return handouts.status();
  if (!is_member) return std::unique_ptr<Bootstrap>();
  if (!needs_id) {
    Result<std::vector<std::unique_ptr<Bootstrap>>> alone = join_in_process(1, options);
    if (!alone.is_ok()) return alone.status();
    return std::move(alone.value().front());
  }
  const std::string& text = handouts.value()[static_cast<std::size_t>(leader)];
  if (text.starts_with('!')) return failure_of(leader, text);
  const Result<UniqueId> id = UniqueId::from_text(text);
  if (!id.is_ok()) return id.status();
  const auto self = std::find_if(group.begin(), group.end(), [&](const Member& member) {
    return member.rank == parent.rank();
  });
  return join(id.value(), static_cast<int>(self - group.begin()), static_cast<int>(group.size()),
              options);
}

}  // namespace polyrail
