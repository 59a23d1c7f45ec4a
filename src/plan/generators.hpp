// The generators: each writes the steps by which the members of a piece reduce it, every member
// ending with the result in its output. In the comments n is the number of members, S the bytes of
// the piece, T(x) the time of x bytes over the rail.
//
// Every element is reduced in the same operand order for all members, so results are equal to the
// last bit. Chunks, several planes and levels of hosts are made of these by compose.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "src/plan/piece.hpp"

namespace polyrail {

// By member: the steps after which the result is in its output.
using DoneSteps = std::vector<StepList>;

// Everybody puts its whole contribution to everybody and reduces on its own.
// Time T(S) for n = 2, else one latency and (n-1)S through each rail; each rank sends (n-1)S.
// Scratch (n-2)S, in place (n-1)S. Best for tiny messages, and at any size for two ranks.
DoneSteps one_shot(PlanBuilder& builder, const Piece& piece);

// As one_shot, but puts leave from a copy of the contribution, so that an in-place result need not
// wait until they are acknowledged. S more scratch. Best for tiny in-place messages.
DoneSteps one_shot_staged(PlanBuilder& builder, const Piece& piece);

// Each member owns a part of the range: it gets that part from everybody, reduces it, and puts the
// result to everybody. For n = 2 the same as one_shot.
// Two latencies; each rank sends (1 + w(n-2))S with w its weight, 2S(n-1)/n if all are equal.
// Scratch S(n-2)/n, in place 2S(n-1)/n. Best for middle sizes, and for large ones over unequal
// hosts: with fitting weights it reaches the limit of such hosts.
DoneSteps direct(PlanBuilder& builder, const Piece& piece);

// Partial sums of n blocks travel round the ring, then the results do.
// 2(n-1) latencies; each rank sends 2S(n-1)/n, and only to its neighbour. Scratch S(n-2)/n, in
// place S. Best for large messages over equal hosts.
DoneSteps ring(PlanBuilder& builder, const Piece& piece);

}  // namespace polyrail
