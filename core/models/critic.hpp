// The entity critic: the value of a state.
//
// A network of two layers reads every living object; a head of two layers reads the mean and the maximum over a state's
// agents, the share of them that live, the same of its tasks, and the features of the whole environment.
#pragma once

#include <vector>

#include "array.hpp"

namespace muster {

struct CriticInputs {
  Array3<const float> agents;     // [B, N, D]
  Array3<const float> tasks;      // [B, M, E]
  Array2<const bool> agent_alive;  // [B, N]
  Array2<const bool> task_alive;   // [B, M]
  Array2<const float> shared;      // [B, G], or empty
};

class EntityCritic {
 public:
  // `parameters` hold, one after the other, for the networks agent, task and head: weight of the first layer
  // [outputs, inputs], its bias, weight and bias of the second. All hidden layers have `width` units.
  EntityCritic(Array1<const float> parameters, Index agents, Index tasks, Index shared, Index width);

  void value(const CriticInputs& inputs, float* values) const;

  // Values, and the gradient of their mean Huber loss, added to `gradient`, which is laid out as the parameters; returns
  // the loss.
  double add_gradient(const CriticInputs& inputs, Array1<const float> target, float* values, double* gradient) const;

  // Number of parameters.
  Index size() const { return width * (nets[kAgent].inputs + nets[kTask].inputs + nets[kHead].inputs + 2 * width + 6) + 1; }

  // One network: rows are inputs, columns outputs, padded with zeros. back: rows are outputs of a layer.
  struct Net {
    Index inputs, outputs;
    std::vector<float> weight1, bias1, weight2, bias2, back;
  };
  enum Kind { kAgent, kTask, kHead };

  Index width;   // of the hidden layers
  Index padded;  // padded
  Net nets[3];   // back of agent and task: of the second layer; of the head: of the first
};

}  // namespace muster
