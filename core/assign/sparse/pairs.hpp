// Large problems with few allowed pairs, agent by agent, and a matching of agents to pairs.
#pragma once

#include "../../arena.hpp"
#include "../../array.hpp"

namespace muster {

constexpr Index kNone = -1;

// The allowed pairs of agent i are first[i] .. first[i + 1] - 1.
struct Pairs {
  Array1<const Index> first;      // [N + 1]
  Array1<const Index> task;       // [P]
  Array1<const double> score;     // [P]
  Array1<const double> use;       // [P] contributions
  Array1<const double> capacity;  // [M] in slots where every agent takes one
  double idle;                    // value of leaving an agent out

  Index n() const { return first.size - 1; }
  Index m() const { return capacity.size; }
};

// The pair that each agent has, and the agents on each task as linked lists.
struct Matching {
  Array1<Index> pair;      // [N] kNone for an agent that has no task
  Array1<Index> head;      // [M] the first agent on a task
  Array1<Index> next;      // [N]
  Array1<Index> previous;  // [N]
  Array1<Index> count;     // [M]
};

inline Matching make_matching(Arena& arena, const Pairs& pairs) {
  const auto filled = [&arena](Index size) {
    const Array1<Index> array = arena.make1<Index>(size);
    std::fill(array.begin(), array.end(), kNone);
    return array;
  };
  const Index n = pairs.n(), m = pairs.m();
  return {filled(n), filled(m), filled(n), filled(n), arena.zeros1<Index>(m)};
}

// Give a pair to agent i, which has none.
inline void join(const Matching& matching, const Pairs& pairs, Index i, Index pair) {
  const Index j = pairs.task[pair], head = matching.head[j];
  matching.pair[i] = pair;
  matching.previous[i] = kNone;
  matching.next[i] = head;
  if (head != kNone) matching.previous[head] = i;
  matching.head[j] = i;
  ++matching.count[j];
}

// Take its pair from agent i.
inline void leave(const Matching& matching, const Pairs& pairs, Index i) {
  const Index j = pairs.task[matching.pair[i]], previous = matching.previous[i], next = matching.next[i];
  (previous != kNone ? matching.next[previous] : matching.head[j]) = next;
  if (next != kNone) matching.previous[next] = previous;
  --matching.count[j];
  matching.pair[i] = kNone;
}

}  // namespace muster
