// Memory of a workspace: many arrays, few allocations, all freed together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "array.hpp"

namespace muster {

class Arena {
 public:
  Arena() = default;
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;
  // The thread's next arena begins with this one's memory: to touch fresh pages can cost as much as a small computation.
  ~Arena() {
    Spare& spare = spare_of_thread();
    if (blocks_.empty() || total_ <= spare.size || total_ > kLargestSpare) return;
    spare.block = blocks_.size() == 1 ? std::move(blocks_.front()) : Block(nullptr, Free{kAlignment});
    spare.size = total_;
  }

  // Arrays are not cleared unless asked for by zeros.
  template <class T>
  Array1<T> make1(Index n) {
    return {take<T>(n), n};
  }
  template <class T>
  Array2<T> make2(Index n, Index m) {
    return {take<T>(n * m), n, m};
  }
  template <class T>
  Array3<T> make3(Index k, Index n, Index m) {
    return {take<T>(k * n * m), k, n, m};
  }
  template <class T>
  Array1<T> zeros1(Index n) {
    Array1<T> array = make1<T>(n);
    std::fill_n(array.data, n, T{});
    return array;
  }
  template <class T>
  Array2<T> zeros2(Index n, Index m) {
    Array2<T> array = make2<T>(n, m);
    std::fill_n(array.data, n * m, T{});
    return array;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kBlock = std::size_t{1} << 16;
  static constexpr std::size_t kHugePage = std::size_t{1} << 21;
  static constexpr std::size_t kLargestSpare = std::size_t{1} << 23;

  struct Free {
    std::size_t alignment;
    void operator()(std::byte* block) const { ::operator delete(block, std::align_val_t{alignment}); }
  };

  using Block = std::unique_ptr<std::byte[], Free>;

  struct Spare {
    Block block{nullptr, Free{kAlignment}};
    std::size_t size = 0;  // of the block; where there is none, that of one which would have been enough
  };

  static Spare& spare_of_thread() {
    static thread_local Spare spare;
    return spare;
  }

  template <class T>
  T* take(Index count) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > left_) add_block(bytes);
    std::byte* start = next_;
    next_ += bytes;
    left_ -= bytes;
    return reinterpret_cast<T*>(start);
  }

  void add_block(std::size_t bytes) {
    std::size_t size = std::max(bytes, kBlock);
    Spare& spare = spare_of_thread();
    if (spare.size >= size) {
      size = spare.size;
      spare.size = 0;
      if (spare.block) return use_block(std::move(spare.block), size);
    }
    // Touching much fresh memory page by page would take longer than the work done in it.
    const std::size_t alignment = size >= 2 * kHugePage ? kHugePage : kAlignment;
    auto* block = static_cast<std::byte*>(::operator new(size, std::align_val_t{alignment}));
#ifdef __linux__
    if (alignment == kHugePage) madvise(block, size, MADV_HUGEPAGE);
#endif
    use_block(Block(block, Free{alignment}), size);
  }

  void use_block(Block block, std::size_t size) {
    next_ = block.get();
    left_ = size;
    total_ += size;
    blocks_.push_back(std::move(block));
  }

  std::vector<Block> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t total_ = 0;
};

}  // namespace muster
