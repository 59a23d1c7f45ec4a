// The generators. Those of all_reduce write the steps by which the members of a piece reduce it,
// every member ending with the result in its output; scans likewise. Broadcast, all_gather, reduce
// and reduce_scatter are blocks that travel along trees (blocks.hpp); all_to_all, gather and
// scatter are moves between pairs. In the comments n is the number of members, S the bytes of the
// piece.
//
// Every element is reduced in the same operand order for all members, so results are equal to the
// last bit. Chunks and several planes are made of these by compose.hpp.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "src/plan/piece.hpp"
#include "src/plan/rank_tree.hpp"

namespace polyrail {

// By member: the steps after which the result is in its output.
using DoneSteps = std::vector<StepList>;
using Generate = DoneSteps (*)(PlanBuilder& builder, const Piece& piece);

// Everybody puts its whole contribution to everybody and reduces on its own.
// One latency; each rank sends (n-1)S. Scratch (n-2)S, in place (n-1)S. Best for tiny messages, and
// for two ranks at any size: there, in place, the sum follows the put that it writes over.
DoneSteps one_shot(PlanBuilder& builder, const Piece& piece);

// As one_shot, but in place puts leave from a copy of the contribution, so that the result need not
// wait until they are acknowledged. In place S more scratch. Best for small in-place messages.
DoneSteps one_shot_staged(PlanBuilder& builder, const Piece& piece);

// Each member owns a part of the range: it gets that part from everybody, reduces it, and puts the
// result to everybody. For n = 2 the same as one_shot.
// Two latencies; a rank that owns the part w sends (1 + w(n-2))S, 2S(n-1)/n if all own the same.
// Scratch S(n-2)/n, in place S(n-1)/n. Best for middle sizes, and for large ones over unequal
// hosts, whose limit it reaches with fitting parts.
DoneSteps direct(PlanBuilder& builder, const Piece& piece);

// Partial sums of n blocks travel round the ring, then the results do.
// 2(n-1) latencies; each rank sends 2S(n-1)/n, and only to its neighbour. Scratch S(n-2)/n, in
// place S(n-1)/n. Best for large messages over equal hosts.
DoneSteps ring(PlanBuilder& builder, const Piece& piece);

// Pairs at distance 1, 2, 4, ... exchange their sums so far.
// log2 n latencies, each rank sends S log2 n; for other n than powers of two two latencies and at
// most 2S more. Scratch about S log2 n. Best for small messages among many ranks.
DoneSteps recursive_doubling(PlanBuilder& builder, const Piece& piece);

// Pairs at distance n/2, n/4, ... exchange halves of what they still have, then the results
// come back the other way.
// 2 log2 n latencies, each rank sends 2S(n-1)/n; for other n than powers of two two latencies and
// 2S more. Scratch S(n-2)/n, in place S/n more. Best for middle sizes among many ranks.
DoneSteps halving_doubling(PlanBuilder& builder, const Piece& piece);

// Sums go up a binary tree to the first member, the result comes down.
// 2 log2 n latencies; a rank sends S for its parent and S for each of at most two children.
// Scratch 2S. With chunks over two trees in which nobody has children twice each rank sends 2S.
// Best for middle sizes among very many ranks, and where slow hosts can be leaves.
DoneSteps tree(PlanBuilder& builder, const Piece& piece);

// Ranks of one host reduce among themselves, one rank for each slice of the range; the ranks that
// own the same slice run `across` over the hosts; the results go round inside each host. With
// `uses_all_ranks` the slices are spread over all ranks of the largest host, else there is one.
// `hosts`: by member, a number for each host; at least two are different.
// Two latencies of the host-local rail more than `across`. A host sends what a rank would send in
// `across` alone. Scratch about 2S for a host's slices. Best for several ranks per host.
DoneSteps two_level(PlanBuilder& builder, const Piece& piece, const std::vector<int>& hosts,
                    Generate across, bool uses_all_ranks);

// one_shot and direct whose puts carry elements of the wire type. Scratch for those: one_shot
// (n+1)S, direct 4S, of the narrower elements.
DoneSteps one_shot_narrow(PlanBuilder& builder, const Piece& piece);
DoneSteps direct_narrow(PlanBuilder& builder, const Piece& piece);

// The prefix so far goes from each member to the next.
// n-1 latencies; each rank sends S. Scratch 0, exclusive S; in place S, exclusive 2S. Best for
// large vectors, in chunks.
DoneSteps scan_chain(PlanBuilder& builder, const Piece& piece);

// Each member puts its contribution to all behind it.
// One latency; member i sends (n-1-i)S. Scratch iS. Best for small vectors.
DoneSteps scan_direct(PlanBuilder& builder, const Piece& piece);

// all_gather and reduce_scatter among a power of two of ranks: pairs at distance 1, 2, 4 ...
// exchange all the blocks they have, or from n/2 down what is not theirs.
// log2 n latencies and messages; each rank sends S(n-1)/n. Scratch, to reduce, S(n-1)/n. Best for
// small blocks among many ranks.
void write_doubling(PlanBuilder& builder, const Route& route);

// How many bytes of a move go over each route, by the bytes of the move.
using PairSplits = std::map<std::uint64_t, std::vector<std::uint64_t>>;

// Each rank puts what it has for another straight to that one.
// One latency; every byte crosses once. Scratch only for all_to_all in place: what is received.
// Moves of middle size go to, or come from, one or two others at a time, so that rails are not
// flooded from many sides; for gather the root then tells each rank to begin.
void write_moves(PlanBuilder& builder, const std::vector<Route>& routes, const PairSplits& splits);

// log2 n latencies (rounded up), as many messages without bytes.
void write_barrier(PlanBuilder& builder, const Route& route);

// What time a generator takes on rails that are all alike: `latencies` times the latency of the
// rail, and for each of `loads` as many messages one after the other through each rank's rail.
struct CostShape {
  struct Load {
    double message_count = 0;
    double fraction = 0;  // of the bytes of the piece, in each message
  };
  double latencies = 0;
  std::vector<Load> loads;
};

struct GeneratorInfo {
  std::string_view name;
  CostShape (*cost_shape)(Collective collective, int member_count);
  std::string_view idea;               // for people
  Generate generate = nullptr;         // all_reduce and scans
  Generate generate_narrow = nullptr;  // all_reduce with a wire type
  Shape shape = Shape::kStar;          // of blocks
  bool wants_weights = false;          // gives unequal hosts unequal parts of the work
  bool is_doubling = false;            // of blocks, instead of a shape
  bool wants_mirror = false;           // every second chunk runs with the members in reverse order
  bool keeps_rank_order = false;       // can combine operands from left to right in rank order
};

// All of a collective but two_level, which is built over these.
std::span<const GeneratorInfo> generators(Collective collective);
const GeneratorInfo* find_generator(Collective collective, std::string_view name);

}  // namespace polyrail
