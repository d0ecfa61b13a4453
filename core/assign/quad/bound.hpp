// Upper bounds of QUAD, by effort: tangents, shares, curvature, branch and bound.
#pragma once

#include "../certificate.hpp"
#include "../local_search.hpp"
#include "frank_wolfe.hpp"
#include "pair_terms.hpp"
#include "proof.hpp"

namespace muster {

// Tasks up to which the curvature of c'gc is used.
constexpr Index kCurvatureTasks = 128;

// Workspace of everything that bounds.
struct Bounds {
  Array1<double> bonus;    // [M] most that pair terms can add for an agent on each task
  Array1<double> prices;   // [M] that go with it
  Array1<double> scratch;  // [2 M]
  TaskLimits limits;
  Proof proof;
  Array2<double> matrix;  // [M, M], where there are no more tasks than kCurvatureTasks
};

Bounds make_bounds(Arena& arena, Index n, Index m);

// Whether there are so few assignments that branch and bound takes no longer than a search.
bool is_small(const Instance& instance, const Settings& settings);

// Put the relaxation on the best vertex for scores + bonus.
void solve_for_bonus(Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus, bool warm,
                     Stop& stop);

// Upper bound on every assignment; `plan` is improved where the proof finds a better one.
//
// Sets prices and duality gap if the settings ask for certificates. `trial` is scratch.
double bound_answer(Bounds& bounds, Plan& plan, Plan& trial, Relaxation& relaxation, const FrankWolfe& walk,
                    Search& search, const Instance& instance, const Settings& settings, const Array1<double>& prices,
                    Certificate& certificate, Stop& stop);

}  // namespace muster
