#include "jonker_volgenant.hpp"

#include <cmath>

#include "../simd.hpp"
#include "../instance.hpp"

namespace muster {

namespace {

// The simplex solves smaller instances in the same time.
constexpr Index kLeastPairs = 1'000;
// Up to this many pairs, ties are left to the simplex.
constexpr Index kTiePairs = 100'000;
// Bids for each agent before paths take over.
constexpr Index kBids = 3;
// Exchanges that gain or lose less than this share of the largest score tie.
constexpr double kTieTolerance = 1e-11;
// Steps of a path between two checks of the stop.
constexpr Index kBetweenStops = 256;

// The least of some values, leaving out -infinity; infinity if there is none.
double least_finite(const double* values, Index count) {
  double least = kInfinity;
  for (Index j = 0; j < count; ++j) least = values[j] > -kInfinity ? smaller(values[j], least) : least;
  return least;
}

struct BestTwo {
  double first = -kInfinity;
  double second = -kInfinity;
};

// The two largest values[j] - prices[j].
BestTwo best_two(const double* values, const double* prices, Index m) {
  BestTwo best;
  Index j = 0;
  if (m >= 2 * Lanes::kCount) {
    Lanes first = Lanes::fill(-kInfinity), second = first, third = first, fourth = first;
    for (; j + 2 * Lanes::kCount <= m; j += 2 * Lanes::kCount) {
      const Lanes a = Lanes::load(values + j) - Lanes::load(prices + j);
      const Lanes b = Lanes::load(values + j + Lanes::kCount) - Lanes::load(prices + j + Lanes::kCount);
      second = larger(second, smaller(a, first));
      first = larger(a, first);
      fourth = larger(fourth, smaller(b, third));
      third = larger(b, third);
    }
    second = larger(larger(second, fourth), smaller(first, third));
    first = larger(first, third);
    double firsts[Lanes::kCount], seconds[Lanes::kCount];
    first.store(firsts);
    second.store(seconds);
    for (Index k = 0; k < Lanes::kCount; ++k) {
      best.second = larger(larger(best.second, seconds[k]), smaller(firsts[k], best.first));
      best.first = larger(firsts[k], best.first);
    }
  }
  for (; j < m; ++j) {
    const double value = values[j] - prices[j];
    best.second = larger(best.second, smaller(value, best.first));
    best.first = larger(value, best.first);
  }
  return best;
}

// Auction: agents bid for their best tasks. Returns how many agents are left in the queue that gain by some task.
Index bid(const JonkerVolgenant& work, const Array2<const double>& score, double idle) {
  const Index n = score.rows, m = score.columns;
  Index left = 0, bids = kBids * n;
  for (Index start = 0; start < n; ++start) {
    Index i = start;
    while (i >= 0) {
      const double* const row = score.row(i).data;
      const BestTwo best = best_two(row, work.price.data, m);
      // Prices only rise: an agent that is better left out now stays so.
      if (best.first <= idle) break;
      const Index j = index_of_margin(best.first, row, work.price.data, m);
      const double raise = best.first - std::max(best.second, idle);
      const Index displaced = work.owner[j];
      if (displaced >= 0 && (raise <= 0.0 || --bids < 0)) {
        work.queue[left++] = i;
        break;
      }
      work.price[j] += raise;
      work.owner[j] = i;
      work.task[i] = j;
      if (displaced >= 0) work.task[displaced] = -1;
      i = displaced;
    }
  }
  return left;
}

// Relax the distances of all open tasks from an agent with scores `row` that was reached at cost `base`; returns the least
// distance of an open task.
double relax(const JonkerVolgenant& work, const double* row, double base, Index agent, Index m) {
  double* const distance = work.distance.data;
  double* const before = work.before.data;
  const double* const open = work.open.data;
  const Lanes bases = Lanes::fill(base), agents = Lanes::fill(static_cast<double>(agent));
  Lanes least = Lanes::fill(kInfinity);
  Index j = 0;
  for (; j + Lanes::kCount <= m; j += Lanes::kCount) {
    const Lanes now = bases - (Lanes::load(row + j) - Lanes::load(open + j));
    const Lanes old = Lanes::load(distance + j);
    const Lanes shortest = smaller(now, old);
    where_less(now, old, agents, Lanes::load(before + j)).store(before + j);
    shortest.store(distance + j);
    least = smaller(shortest, least);
  }
  double best = smallest_lane(least);
  for (; j < m; ++j) {
    const double now = base - (row[j] - open[j]);
    if (now < distance[j]) {
      distance[j] = now;
      before[j] = static_cast<double>(agent);
    }
    best = smaller(distance[j], best);
  }
  return best;
}

// Augment along the shortest path from agent `start`, which ends at a free task or leaves an agent out; false if stopped.
bool augment(const JonkerVolgenant& work, const Array2<const double>& score, double idle, Index start, Stop& stop) {
  const Index m = score.columns;
  std::copy_n(work.price.data, m, work.open.data);
  std::fill_n(work.distance.data, m, kInfinity);
  Index agent = start, count = 0, end = -1, dropped = start;
  double base = 0.0, least_drop = kInfinity, least;
  while (true) {
    if (base - idle < least_drop) {
      least_drop = base - idle;
      dropped = agent;
    }
    if (count % kBetweenStops == 0 && stop.requested()) return false;
    least = relax(work, score.row(agent).data, base, agent, m);
    if (!(least < least_drop)) {
      least = least_drop;
      break;
    }
    const Index j = index_of(least, work.distance.data, m);
    if (work.owner[j] < 0) {
      end = j;
      break;
    }
    work.reached[count] = j;
    work.cost[count++] = least;
    work.distance[j] = work.open[j] = kInfinity;
    agent = work.owner[j];
    base = least + (score(agent, j) - work.price[j]);
  }
  for (Index k = 0; k < count; ++k) work.price[work.reached[k]] += least - work.cost[k];
  if (end < 0) {
    if (dropped == start) return true;
    end = work.task[dropped];
    work.task[dropped] = -1;
  }
  while (true) {
    agent = static_cast<Index>(work.before[end]);
    work.owner[end] = agent;
    std::swap(work.task[agent], end);
    if (agent == start) return true;
  }
}

// Whether the optimum is unique: no cycle of exchanges costs nothing, up to the tolerance. Node n stands for having no
// task, and for tasks without an agent.
bool is_unique(const JonkerVolgenant& work, const Array2<const double>& score, double idle, double tolerance) {
  const Index n = score.rows, m = score.columns, most = work.arc_to.size;
  const double* const price = work.price.data;
  const auto may_vacate = [&](Index i) { return work.task[i] < 0 || price[work.task[i]] <= tolerance; };
  std::fill_n(work.entering.data, n + 1, 0);
  Index arcs = 0;
  for (Index i = 0; i < n; ++i) {
    const double* const row = score.row(i).data;
    const Index own = work.task[i];
    const double worth = own >= 0 ? row[own] - price[own] : idle;
    work.arc_start[i] = arcs;
    work.entering[i] += may_vacate(i);
    // So many ties that a cycle is taken for granted.
    if (arcs + m + 1 > most) return false;
    if (own >= 0 && worth - idle <= tolerance) work.arc_to[arcs++] = n;
    const Lanes enough = Lanes::fill(worth - tolerance);
    for (Index j = 0; j < m; j += Lanes::kCount) {
      if (j + Lanes::kCount <= m && !any_reach(Lanes::load(row + j) - Lanes::load(price + j), enough)) continue;
      for (Index k = j; k < std::min(m, j + Lanes::kCount); ++k) {
        if (k != own && row[k] - price[k] >= worth - tolerance) work.arc_to[arcs++] = work.owner[k] >= 0 ? work.owner[k] : n;
      }
    }
    for (Index k = work.arc_start[i]; k < arcs; ++k) ++work.entering[work.arc_to[k]];
  }
  work.arc_start[n] = arcs;
  // Remove nodes without an entering arc, as in a topological sort: only cycles are left over.
  Index count = 0;
  for (Index i = 0; i <= n; ++i) {
    if (work.entering[i] == 0) work.queue[count++] = i;
  }
  const auto leave = [&](Index to) {
    if (--work.entering[to] == 0) work.queue[count++] = to;
  };
  for (Index k = 0; k < count; ++k) {
    const Index from = work.queue[k];
    if (from < n) {
      for (Index arc = work.arc_start[from]; arc < work.arc_start[from + 1]; ++arc) leave(work.arc_to[arc]);
    } else {
      for (Index i = 0; i < n; ++i) {
        if (may_vacate(i)) leave(i);
      }
    }
  }
  return count == n + 1;
}

// Write the answer to row b as LP does, with the bound of the prices if it is to be certified.
void write_assignment(const JonkerVolgenant& work, const Array2<const double>& score, double idle, Index b,
                 const Settings& settings, const Output& out) {
  const Index n = score.rows, m = score.columns;
  double objective = 0.0, relaxed = 0.0, left_out = 0.0;
  for (Index i = 0; i < n; ++i) {
    const Index j = work.task[i];
    out.assignment(b, i) = j;
    if (j >= 0) {
      objective += score(i, j);
      relaxed += score(i, j);
      out.reason(b, i) = kAssigned;
      continue;
    }
    relaxed += idle;
    left_out += 1.0;
    out.reason(b, i) = kNegativeScores;
    for (Index k = 0; k < m; ++k) {
      // It has no task although one has a positive score: another agent gains more by that one.
      if (score(i, k) > idle) out.reason(b, i) = kNoCapacity;
    }
  }
  for (Index j = 0; j < m; ++j) out.loads(b, j) = work.owner[j] >= 0 ? 1.0 : 0.0;
  out.objective[b] = objective;
  out.relaxed[b] = relaxed - idle * left_out;
  out.status[b] = kOptimal;
  out.bound[b] = out.duality_gap[b] = out.frank_wolfe_gap[b] = kNaN;
  if (!settings.certify || !settings.report_proof) return;
  double limit = 0.0;
  for (Index j = 0; j < m; ++j) {
    out.prices(b, j) = work.price[j];
    limit += work.price[j];
  }
  for (Index i = 0; i < n; ++i) limit += std::max(idle, largest_margin(score.row(i).data, work.price.data, m));
  out.duality_gap[b] = limit - relaxed;
  out.bound[b] = idle * left_out == 0.0 ? std::max(limit, relaxed) : out.relaxed[b];
}

}  // namespace

JonkerVolgenant make_jonker_volgenant(Arena& arena, Index n, Index m) {
  return {arena.make1<Index>(n),     arena.make1<Index>(m),     arena.make1<double>(m),
          arena.make1<double>(m),    arena.make1<double>(m),    arena.make1<double>(m),
          arena.make1<Index>(m),     arena.make1<double>(m),    arena.make1<Index>(n + 1),
          arena.make1<Index>(n + 1), arena.make1<Index>(8 * (n + m)), arena.make1<Index>(n + 1)};
}

bool is_linear_assignment(const Problem& problem) {
  return problem.contributions.layers == 0 && problem.allowed.layers == 0 && problem.task_scores.layers == 0 &&
         problem.scores.rows * problem.scores.columns >= kLeastPairs;
}

bool solve_by_jonker_volgenant(const JonkerVolgenant& work, Index b, const Problem& problem, const Settings& settings,
                               const Output& out, Stop& stop) {
  const Array2<const double> score = problem.scores.layer(b);
  const Index n = score.rows, m = score.columns;
  Index odd = 0;
  for (Index i = 0; i < n; ++i) odd += !problem.agent_alive(b, i);
  for (Index j = 0; j < m; ++j) odd += !problem.task_alive(b, j) || problem.capacities(b, j) != 1.0;
  if (odd > 0) return false;
  double low = kInfinity, high = -kInfinity;
  for (Index i = 0; i < n; ++i) {
    Extent own = extent(score.row(i).data, m);
    if (own.low == -kInfinity) own.low = least_finite(score.row(i).data, m);
    if (!(own.low >= -kLargestNumber && own.high <= kLargestNumber)) return false;
    low = std::min(low, own.low);
    high = std::max(high, own.high);
  }
  const double idle = settings.assign_all && high > -kInfinity ? penalty_of(low, high, 0.0, n) : 0.0;
  std::fill_n(work.task.data, n, -1);
  std::fill_n(work.owner.data, m, -1);
  std::fill_n(work.price.data, m, 0.0);
  const Index left = bid(work, score, idle);
  for (Index k = 0; k < left; ++k) {
    if (!augment(work, score, idle, work.queue[k], stop)) return false;
  }
  // Prices can grow beyond the scores; their rounding errors then do too.
  double scale = std::max(std::abs(low), std::abs(high));
  for (Index j = 0; j < m; ++j) scale = larger(work.price[j], scale);
  if (n * m <= kTiePairs && !is_unique(work, score, idle, kTieTolerance * scale)) return false;
  write_assignment(work, score, idle, b, settings, out);
  return true;
}

}  // namespace muster
