// Within the hosts, across the hosts, and back.

#include <algorithm>
#include <map>

#include "src/base/assert.hpp"
#include "src/plan/generators.hpp"

namespace polyrail {
namespace {

// One host's part in all slices.
struct HostPart {
  std::vector<int> members;    // member numbers
  std::vector<int> owners;     // by slice: an index into members
  std::vector<Held> sums;      // by slice: what the owner takes across
  std::vector<StepList> done;  // by slice: the result is in the owner's output

  int size() const { return static_cast<int>(members.size()); }
};

std::vector<HostPart> group(const std::vector<int>& hosts) {
  std::map<int, std::size_t> places;
  std::vector<HostPart> parts;
  for (std::size_t member = 0; member < hosts.size(); ++member) {
    const auto [at, is_new] = places.try_emplace(hosts[member], parts.size());
    if (is_new) parts.emplace_back();
    parts[at->second].members.push_back(static_cast<int>(member));
  }
  return parts;
}

void reduce_within(PlanBuilder& builder, const Piece& piece, const std::vector<Range>& slices,
                   HostPart& host) {
  host.sums.resize(slices.size());
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const int owner = host.members[host.owners[s]];
    host.sums[s] = {piece.data(owner, slices[s]), piece.members[owner].after};
  }
  for (int distance = 1; distance < host.size(); ++distance) {
    for (std::size_t s = 0; s < slices.size(); ++s) {
      if (slices[s].bytes == 0) continue;
      const int owner = host.members[host.owners[s]];
      const int from = host.members[(host.owners[s] - distance + host.size()) % host.size()];
      const Member& sender = piece.members[from];
      const Slice landing = builder.allocate(piece.members[owner].rank, slices[s].bytes);
      const auto moved =
          send(builder, piece, from, owner, {piece.data(from, slices[s]), sender.after}, landing);
      Held& sum = host.sums[s];
      const Slice target = distance == 1 ? landing : sum.at;
      sum = {target,
             {builder.reduce(piece.members[owner].rank, sum.at, landing, target, false,
                             join(sum.ready, {moved.wait}))}};
    }
  }
}

void gather_within(PlanBuilder& builder, const Piece& piece, const std::vector<Range>& slices,
                   const HostPart& host, DoneSteps& done) {
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const int owner = host.members[host.owners[s]];
    done[owner] = join(done[owner], host.done[s]);
  }
  for (int distance = 1; distance < host.size(); ++distance) {
    for (std::size_t s = 0; s < slices.size(); ++s) {
      if (slices[s].bytes == 0) continue;
      const int to = host.members[(host.owners[s] + distance) % host.size()];
      const Held result{output_slice(slices[s]), host.done[s]};
      done[to].push_back(
          deliver(builder, piece, host.members[host.owners[s]], to, slices[s], result));
    }
  }
}

}  // namespace

DoneSteps two_level(PlanBuilder& builder, const Piece& piece, const std::vector<int>& hosts,
                    Generate across, bool uses_all_ranks) {
  std::vector<HostPart> parts = group(hosts);
  PR_ASSERT(hosts.size() == piece.members.size() && parts.size() >= 2);
  int slice_count = 1;
  if (uses_all_ranks) {
    for (const HostPart& host : parts) slice_count = std::max(slice_count, host.size());
  }
  const std::vector<Range> slices = cut_evenly(piece.range, slice_count, builder.element_bytes());
  for (HostPart& host : parts) {
    for (int s = 0; s < slice_count; ++s) host.owners.push_back(s * host.size() / slice_count);
    reduce_within(builder, piece, slices, host);
    host.done.resize(slices.size());
  }

  for (std::size_t s = 0; s < slices.size(); ++s) {
    if (slices[s].bytes == 0) continue;
    Piece slice;
    slice.range = slices[s];
    slice.route = piece.route;
    for (const HostPart& host : parts) {
      const Member& owner = piece.members[host.members[host.owners[s]]];
      slice.members.push_back({owner.rank, host.sums[s].at, host.sums[s].ready, owner.is_in_place});
      if (piece.weights.empty()) continue;
      double weight = 0;
      for (const int member : host.members) weight += piece.weights[member];
      slice.weights.push_back(weight);
    }
    const DoneSteps done = across(builder, slice);
    for (std::size_t h = 0; h < parts.size(); ++h) parts[h].done[s] = done[h];
  }

  DoneSteps done(piece.member_count());
  for (const HostPart& host : parts) gather_within(builder, piece, slices, host, done);
  return done;
}

}  // namespace polyrail
