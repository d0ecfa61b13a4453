// Tasks that need several agents: a task gets at least its minimum load, or no agent.
#pragma once

#include <vector>

#include "../plan.hpp"

namespace muster {

// The allowed pairs of an instance by task, and what each task needs. Scores include no pair terms.
struct Teams {
  Index n = 0;
  Index m = 0;
  double idle = 0.0;           // value of leaving an agent out
  bool uniform = true;         // each task gets the same from all its agents
  std::vector<double> least;   // [M] minimum load of a task that has agents; 0 for none
  std::vector<double> empty;   // [M] value of a task without agents: 0, or very negative where it has to be served
  std::vector<double> most;    // [M] capacity
  std::vector<Index> fewest_agents;  // [M] where uniform: numbers of agents instead of loads
  std::vector<Index> most_agents;
  std::vector<Index> first;    // [M + 1] pairs of task j: first[j] <= e < first[j + 1]
  std::vector<Index> agent;
  std::vector<double> score;
  std::vector<double> use;
  std::vector<char> blocked;   // [N] whether the agent has a score worth taking for a task that can never get its minimum
  std::vector<Index> needy;    // tasks with a minimum above what one agent contributes, or that have to be served
};

// List pairs and minimums by task; pairs of tasks that can never get their minimum become forbidden in the instance.
//
// A task has to be served where `required` says so and its minimum is above 0.
Teams read_teams(Instance& instance, const Array1<const double>& minimums, const Array1<const bool>& required);

// Whether a load reaches a minimum, up to the tolerance.
inline bool reaches(double load, double least) { return load >= least * (1.0 - kCapacityTolerance); }

// Whether every task has its minimum load or no agent.
bool meets_minimums(const Plan& plan, const Teams& teams);

// The objective with the penalties for agents left out and for tasks that have to be served and are not.
double team_value(const Plan& plan, const Instance& instance, const Teams& teams);

}  // namespace muster
