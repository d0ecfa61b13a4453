#include "augmenting_paths.hpp"

#include <algorithm>

#include "../simd.hpp"

namespace muster {

namespace {

// Agents whose pairs are looked at between two looks at the clock.
constexpr Index kScansBetweenStops = 256;

// Where a task is in the heap, if it is not.
constexpr Index kOutside = -1;
constexpr Index kScanned = -2;

struct Entry {
  double length;
  Index task;
};

// The search for one augmenting path (Dijkstra): a binary heap of the tasks reached.
struct Search {
  Array1<double> length;   // [M] of the shortest path to a task found so far, infinite between searches
  Array1<Index> position;  // [M] in the heap, or kOutside, or kScanned
  Array1<Index> agent;     // [M] the agent that would join a task on that path, and by which pair
  Array1<Index> pair;
  Array1<Index> reached;   // [M] the tasks that this search has reached
  Array1<Entry> heap;      // [M]
  Index size;              // of the heap
  Index found;             // tasks reached
  Index agents;            // scanned since the last look at the clock
};

// Move the heap's entry k up to where its length belongs.
void sift_up(const Search& search, Index k) {
  Entry* const heap = search.heap.data;
  Index* const position = search.position.data;
  const Entry entry = heap[k];
  while (k > 0) {
    const Index above = (k - 1) / 2;
    if (heap[above].length <= entry.length) break;
    heap[k] = heap[above];
    position[heap[k].task] = k;
    k = above;
  }
  heap[k] = entry;
  position[entry.task] = k;
}

// Remove the nearest task from the heap.
Entry pop(Search& search) {
  Entry* const heap = search.heap.data;
  Index* const position = search.position.data;
  const Index size = --search.size;
  const Entry nearest = heap[0], last = heap[size];
  Index k = 0;
  while (2 * k + 1 < size) {
    Index child = 2 * k + 1;
    if (child + 1 < size && heap[child + 1].length < heap[child].length) ++child;
    if (last.length <= heap[child].length) break;
    heap[k] = heap[child];
    position[heap[k].task] = k;
    k = child;
  }
  if (size > 0) {
    heap[k] = last;
    position[last.task] = k;
  }
  position[nearest.task] = kScanned;
  return nearest;
}

// Note the tasks that agent i could come to on paths shorter than `limit`; `start` is the path so far plus what the
// agent has now.
void scan(Search& search, const Pairs& pairs, const double* price, Index i, double start, double limit) {
  ++search.agents;
  for (Index pair = pairs.first[i]; pair < pairs.first[i + 1]; ++pair) {
    const Index j = pairs.task[pair];
    const double length = start - pairs.score[pair] + price[j];
    if (!(length < limit && length < search.length[j]) || search.position[j] == kScanned) continue;
    if (search.length[j] == kInfinity) {
      search.reached[search.found++] = j;
      search.position[j] = search.size++;
    }
    search.length[j] = length;
    search.agent[j] = i;
    search.pair[j] = pair;
    search.heap[search.position[j]] = {length, j};
    sift_up(search, search.position[j]);
  }
}

// Bring in one agent by the shortest path, and raise prices so that everybody keeps its best pair; false if stopped.
bool augment(Search& search, const Matching& matching, const Pairs& pairs, double* price, Index start, Stop& stop) {
  // The path ends at task `last`; `dropped` is the agent that it leaves out, if any.
  double end = -pairs.idle;
  Index last = kNone, dropped = start;
  bool stopped = false;
  search.size = 0;
  search.found = 0;
  scan(search, pairs, price, start, 0.0, end);
  while (search.size > 0) {
    const auto [length, j] = pop(search);
    if (length >= end) break;
    if (static_cast<double>(matching.count[j]) < pairs.capacity[j]) {
      end = length, last = j, dropped = kNone;
      break;
    }
    for (Index k = matching.head[j]; k != kNone; k = matching.next[k]) {
      const double has = length + pairs.score[matching.pair[k]] - price[j];
      if (has - pairs.idle < end) end = has - pairs.idle, last = j, dropped = k;
      scan(search, pairs, price, k, has, end);
    }
    if (search.agents >= kScansBetweenStops) {
      search.agents = 0;
      stopped = stop.requested();
      if (stopped) break;
    }
  }
  if (!stopped) {
    for (const Index j : search.reached.first(search.found)) {
      if (search.position[j] == kScanned && search.length[j] < end) price[j] += end - search.length[j];
    }
    if (dropped != kNone && dropped != start) leave(matching, pairs, dropped);
    // Back along the path: each agent takes the task that it reached.
    while (last != kNone) {
      const Index i = search.agent[last], pair = search.pair[last];
      last = kNone;
      if (i != start) {
        last = pairs.task[matching.pair[i]];
        leave(matching, pairs, i);
      }
      join(matching, pairs, i, pair);
    }
  }
  for (const Index j : search.reached.first(search.found)) {
    search.length[j] = kInfinity;
    search.position[j] = kOutside;
  }
  return !stopped;
}

}  // namespace

bool solve_by_augmenting_paths(const Pairs& pairs, const Array1<Index>& chosen, const Array1<double>& price, Stop& stop) {
  const Index n = pairs.n(), m = pairs.m();
  Arena arena;
  const Matching matching = make_matching(arena, pairs);
  Search search{
      .length = arena.make1<double>(m),
      .position = arena.make1<Index>(m),
      .agent = arena.make1<Index>(m),
      .pair = arena.make1<Index>(m),
      .reached = arena.make1<Index>(m),
      .heap = arena.make1<Entry>(m),
      .size = 0,
      .found = 0,
      .agents = 0,
  };
  std::fill(search.length.begin(), search.length.end(), kInfinity);
  std::fill(search.position.begin(), search.position.end(), kOutside);
  std::fill(price.begin(), price.end(), 0.0);
  bool done = !stop.requested();
  for (Index i = 0; i < n && done; ++i) done = augment(search, matching, pairs, price.data, i, stop);
  std::copy(matching.pair.begin(), matching.pair.end(), chosen.data);
  return done;
}

}  // namespace muster
