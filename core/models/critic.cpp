#include "models/critic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/dense.hpp"
#include "models/sums.hpp"

namespace muster {

namespace {

constexpr Index kStates = 64;   // states that are worked on together
constexpr Index kObjects = 64;  // and objects
constexpr Index kTiles = 4;     // tiles whose sums are added up in single precision

// Gradient of one network's parameters.
struct NetSums {
  NetSums(const EntityCritic& critic, EntityCritic::Kind kind, Arena& arena)
      : weight1(round_up(critic.nets[kind].inputs, 4), critic.padded, arena),
        bias1(1, critic.padded, arena),
        weight2(kind == EntityCritic::kHead ? 1 : critic.padded, critic.padded, arena),
        bias2(1, critic.padded, arena) {}
  void flush() const {
    for (const Sums* part : {&weight1, &bias1, &weight2, &bias2}) part->flush();
  }
  Sums weight1, bias1;
  Sums weight2;  // of the head, which has one output: a row
  Sums bias2;
};

// The agents, or the tasks, of some states, and the head's inputs made of them.
struct Side {
  Side(const EntityCritic& critic, EntityCritic::Kind kind, Array3<const float> features_, Array2<const bool> alive_,
       Arena& arena)
      : net(critic.nets[kind]),
        features(features_),
        alive(alive_),
        first(kind * (2 * critic.width + 1)),
        width(critic.width),
        padded(critic.padded),
        objects(arena.zeros2<float>(kObjects, round_up(net.inputs, 4))),
        x(arena.zeros2<float>(kObjects, padded)),
        z(arena.zeros2<float>(kObjects, padded)),
        back(arena.zeros2<float>(kObjects, padded)),
        zero(arena.zeros1<float>(padded)),
        state(arena.make1<Index>(kObjects)),
        object(arena.make1<Index>(kObjects)),
        mean(arena.make2<float>(kStates, padded)),
        top(arena.make2<float>(kStates, padded)),
        winner(arena.make2<std::int32_t>(kStates, padded)),
        share(arena.make1<float>(kStates)) {}

  // Call `work` with tiles of living objects of the states [begin, begin + count), whose first layer is in x.
  template <class Work>
  void each_tile(Index begin, Index count, const Work& work) {
    Index filled = 0;
    const auto flush = [&] {
      multiply({objects.data, objects.columns, 1}, net.weight1.data(), padded, net.bias1.data(), 0, x.data, padded,
               round_up(filled, 4), net.inputs, padded, true);
      work(filled);
      filled = 0;
    };
    for (Index t = 0; t < count; ++t) {
      for (Index i = 0; i < alive.columns; ++i) {
        if (!alive(begin + t, i)) continue;
        const float* const from = features.row(begin + t, i).data;
        std::copy_n(from, net.inputs, objects.row(filled).data);
        state[filled] = t;
        object[filled] = i;
        if (++filled == kObjects) flush();
      }
    }
    if (filled > 0) flush();
  }

  // Mean, maximum and share of the living, into the head's inputs [kStates, columns].
  void pool(Index begin, Index count, Array2<float> inputs) {
    std::fill_n(mean.data, count * padded, 0.0f);
    std::fill_n(top.data, count * padded, -std::numeric_limits<float>::infinity());
    std::fill_n(winner.data, count * padded, -1);
    std::fill_n(share.data, count, 0.0f);
    each_tile(begin, count, [&](Index filled) {
      multiply({x.data, padded, 1}, net.weight2.data(), padded, net.bias2.data(), 0, z.data, padded, round_up(filled, 4),
               padded, padded, false);
      for (Index t = 0; t < filled; ++t) {
        share[state[t]] += 1.0f;
        const std::int32_t who = static_cast<std::int32_t>(object[t]);
        const float* const values = z.row(t).data;
        float* __restrict const means = mean.row(state[t]).data;
        float* __restrict const tops = top.row(state[t]).data;
        std::int32_t* __restrict const winners = winner.row(state[t]).data;
        for (Index k = 0; k < padded; ++k) {
          means[k] += values[k];
          // By bits, so that compilers do not branch on whether any of some units is higher.
          const std::int32_t higher = -static_cast<std::int32_t>(values[k] > tops[k]);
          winners[k] = (who & higher) | (winners[k] & ~higher);
          tops[k] = values[k] > tops[k] ? values[k] : tops[k];
        }
      }
    });
    for (Index t = 0; t < count; ++t) {
      const float living = share[t];
      share[t] = 1.0f / std::max(living, 1.0f);
      float* const to = inputs.row(t).data + first;
      for (Index k = 0; k < width; ++k) {
        to[k] = mean(t, k) * share[t];
        to[width + k] = living > 0.0f ? top(t, k) : 0.0f;
      }
      to[2 * width] = living / static_cast<float>(alive.columns);
    }
  }

  // Add up the network's gradient, given the slopes of the loss in the head's inputs.
  void descend(Index begin, Index count, Array2<float> wanted, const NetSums& sums, Index& tiles) {
    each_tile(begin, count, [&](Index filled) {
      for (Index t = 0; t < filled; ++t) {
        const Index s = state[t];
        const std::int32_t who = static_cast<std::int32_t>(object[t]);
        const float* const means = wanted.row(s).data + first;
        const float* const tops = means + width;
        const std::int32_t* const winners = winner.row(s).data;
        float* __restrict const slopes = z.row(t).data;
        const float part = share[s];
        for (Index k = 0; k < width; ++k) slopes[k] = part * means[k] + (winners[k] == who ? tops[k] : 0.0f);
        std::fill(slopes + width, slopes + padded, 0.0f);
      }
      sums.bias2.add_rows(nullptr, z, filled);
      sums.weight2.add_products(x, z, filled);
      multiply({z.data, padded, 1}, net.back.data(), padded, zero.data, 0, back.data, padded, round_up(filled, 4), padded,
               padded, false);
      for (Index k = 0; k < filled * padded; ++k) back.data[k] = x.data[k] > 0.0f ? back.data[k] : 0.0f;
      sums.bias1.add_rows(nullptr, back, filled);
      sums.weight1.add_products(objects, back, filled);
      if (++tiles % kTiles == 0) sums.flush();
    });
  }

  const EntityCritic::Net& net;
  Array3<const float> features;
  Array2<const bool> alive;
  Index first, width, padded;
  Array2<float> objects, x, z, back;
  Array1<float> zero;
  Array1<Index> state, object;
  Array2<float> mean, top;
  Array2<std::int32_t> winner;  // which object gave each maximum
  Array1<float> share;          // 1 / number of the living
};

// Values of some states, and what the backward pass needs of them.
struct Head {
  Head(const EntityCritic& critic, const CriticInputs& inputs, Arena& arena)
      : net(critic.nets[EntityCritic::kHead]),
        agents(critic, EntityCritic::kAgent, inputs.agents, inputs.agent_alive, arena),
        tasks(critic, EntityCritic::kTask, inputs.tasks, inputs.task_alive, arena),
        shared(inputs.shared),
        padded(critic.padded),
        read(arena.zeros2<float>(kStates, round_up(net.inputs, kColumns))),
        x(arena.zeros2<float>(kStates, padded)),
        value(arena.make1<float>(kStates)) {}

  void forward(Index begin, Index count) {
    agents.pool(begin, count, read);
    tasks.pool(begin, count, read);
    const Index features = shared.rows > 0 ? shared.columns : 0;
    for (Index t = 0; t < count; ++t) {
      for (Index k = 0; k < features; ++k) read(t, net.inputs - features + k) = shared(begin + t, k);
    }
    multiply({read.data, read.columns, 1}, net.weight1.data(), padded, net.bias1.data(), 0, x.data, padded, count,
             net.inputs, padded, true);
    for (Index t = 0; t < count; ++t) {
      float part[8] = {};
      for (Index k = 0; k < padded; k += 8) {
        for (Index lane = 0; lane < 8; ++lane) part[lane] += x(t, k + lane) * net.weight2[k + lane];
      }
      value[t] = net.bias2[0] + (((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7])));
    }
  }

  const EntityCritic::Net& net;
  Side agents, tasks;
  Array2<const float> shared;
  Index padded;
  Array2<float> read;   // [kStates, inputs padded] the head's inputs
  Array2<float> x;      // [kStates, padded] its hidden layer
  Array1<float> value;  // [kStates]
};

}  // namespace

EntityCritic::EntityCritic(Array1<const float> parameters, Index agents, Index tasks, Index shared, Index width_)
    : width(width_), padded(round_up(width_, kColumns)) {
  const float* from = parameters.data;
  const Index inputs[3] = {agents, tasks, 4 * width + 2 + shared};
  for (const Kind kind : {kAgent, kTask, kHead}) {
    Net& net = nets[kind];
    net.inputs = inputs[kind];
    net.outputs = kind == kHead ? 1 : width;
    const Index wide = round_up(net.inputs, kColumns);
    const auto size = [](Index rows, Index columns) { return static_cast<std::size_t>(rows * columns); };
    net.weight1.resize(size(net.inputs, padded));
    net.back.resize(kind == kHead ? size(padded, wide) : size(padded, padded));
    for (Index k = 0; k < width; ++k) {
      for (Index d = 0; d < net.inputs; ++d, ++from) {
        net.weight1[static_cast<std::size_t>(d * padded + k)] = *from;
        if (kind == kHead) net.back[static_cast<std::size_t>(k * wide + d)] = *from;
      }
    }
    net.bias1.assign(from, from + width);
    net.bias1.resize(static_cast<std::size_t>(padded));
    from += width;
    net.weight2.resize(kind == kHead ? static_cast<std::size_t>(padded) : size(padded, padded));
    for (Index k = 0; k < net.outputs; ++k) {
      for (Index q = 0; q < width; ++q, ++from) {
        if (kind == kHead) {
          net.weight2[static_cast<std::size_t>(q)] = *from;
        } else {
          net.weight2[static_cast<std::size_t>(q * padded + k)] = *from;
          net.back[static_cast<std::size_t>(k * padded + q)] = *from;
        }
      }
    }
    net.bias2.assign(from, from + net.outputs);
    net.bias2.resize(static_cast<std::size_t>(round_up(net.outputs, kColumns)));
    from += net.outputs;
  }
}

void EntityCritic::value(const CriticInputs& inputs, float* values) const {
  Arena arena;
  Head head(*this, inputs, arena);
  const Index states = inputs.agent_alive.rows;
  for (Index begin = 0; begin < states; begin += kStates) {
    const Index count = std::min(kStates, states - begin);
    head.forward(begin, count);
    std::copy_n(head.value.data, count, values + begin);
  }
}

double EntityCritic::add_gradient(const CriticInputs& inputs, Array1<const float> target, float* values,
                                  double* gradient) const {
  Arena arena;
  Head head(*this, inputs, arena);
  NetSums sums[3] = {{*this, kAgent, arena}, {*this, kTask, arena}, {*this, kHead, arena}};
  const Net& net = nets[kHead];
  const Array1<float> slope = arena.make1<float>(kStates);
  const Array2<float> back = arena.zeros2<float>(kStates, padded);
  const Array2<float> wanted = arena.zeros2<float>(kStates, head.read.columns);
  const Array1<float> zero = arena.zeros1<float>(wanted.columns);
  const Index states = target.size;
  Index tiles[3] = {};
  double loss = 0.0, bias = 0.0;
  for (Index begin = 0; begin < states; begin += kStates) {
    const Index count = std::min(kStates, states - begin);
    head.forward(begin, count);
    for (Index t = 0; t < count; ++t) {
      values[begin + t] = head.value[t];
      const float error = head.value[t] - target[begin + t], size = std::fabs(error);
      loss += size < 1.0f ? 0.5 * static_cast<double>(error) * static_cast<double>(error) : static_cast<double>(size) - 0.5;
      slope[t] = std::min(std::max(error, -1.0f), 1.0f) / static_cast<float>(states);
      bias += static_cast<double>(slope[t]);
      for (Index k = 0; k < padded; ++k) {
        back(t, k) = head.x(t, k) > 0.0f ? net.weight2[static_cast<std::size_t>(k)] * slope[t] : 0.0f;
      }
    }
    sums[kHead].weight2.add_rows(slope.data, head.x, count);
    sums[kHead].bias1.add_rows(nullptr, back, count);
    sums[kHead].weight1.add_products(head.read, back, count);
    multiply({back.data, padded, 1}, net.back.data(), wanted.columns, zero.data, 0, wanted.data, wanted.columns, count,
             padded, wanted.columns, false);
    head.agents.descend(begin, count, wanted, sums[kAgent], tiles[kAgent]);
    head.tasks.descend(begin, count, wanted, sums[kTask], tiles[kTask]);
    if (++tiles[kHead] % kTiles == 0) sums[kHead].flush();
  }
  double* at = gradient;
  for (const Kind kind : {kAgent, kTask, kHead}) {
    const NetSums& part = sums[kind];
    part.flush();
    for (Index k = 0; k < width; ++k) {
      for (Index d = 0; d < nets[kind].inputs; ++d) *at++ += part.weight1.total(d, k);
    }
    for (Index k = 0; k < width; ++k) *at++ += part.bias1.total(0, k);
    for (Index k = 0; k < nets[kind].outputs; ++k) {
      for (Index q = 0; q < width; ++q) *at++ += kind == kHead ? part.weight2.total(0, q) : part.weight2.total(q, k);
    }
    for (Index k = 0; k < nets[kind].outputs; ++k) *at++ += kind == kHead ? bias : part.bias2.total(0, k);
  }
  return loss / static_cast<double>(states);
}

}  // namespace muster
