// What no assignment is worth more than (QUAD), as far as the effort goes: tangents, shares, curvature, proof.
#pragma once

#include "../certificate.hpp"
#include "../local_search.hpp"
#include "frank_wolfe.hpp"
#include "pair_terms.hpp"
#include "proof.hpp"

namespace muster {

// Tasks up to which c'gc is looked at for its curvature.
constexpr Index kCurvatureTasks = 128;

// Workspace of everything that bounds.
struct Bounds {
  Array1<double> bonus;    // [M] what pair terms can add for an agent on each task
  Array1<double> prices;   // [M] that go with it
  Array1<double> scratch;  // [2 M]
  TaskLimits limits;
  Proof proof;
  Array2<double> matrix;  // [M, M], where there are no more tasks than kCurvatureTasks
};

Bounds make_bounds(Arena& arena, Index n, Index m);

// Whether there are so few assignments that a proof takes no longer than a search.
bool is_small(const Instance& instance, const Settings& settings);

// Put the relaxation on the best vertex for scores + bonus.
void solve_for_bonus(Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus, bool warm, Stop& stop);

// What no assignment is worth more than; `plan` is improved where a proof finds a better one.
//
// Notes prices and duality gap if they are wanted. `trial` is scratch.
double bound_answer(Bounds& bounds, Plan& plan, Plan& trial, Relaxation& relaxation, const FrankWolfe& walk, Search& search,
                    const Instance& instance, const Settings& settings, const Array1<double>& prices,
                    Certificate& certificate, Stop& stop);

}  // namespace muster
