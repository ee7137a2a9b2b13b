#include "graft_foreign.h"

enum { header = 8 }; /* numbers before the first row */

/* Room to work is part of the result, which must be the same everywhere. */
static void clear(int64_t* room, int64_t count) {
  for (int64_t i = 0; i < count; ++i) room[i] = 0;
}

/* Whether a comes before b. */
typedef int (*before)(int64_t a, int64_t b, const void* of);

/* Brings what is at a place of a heap, whose first one comes before all others, down to where it belongs. */
static void sift(int64_t* heap, int64_t count, int64_t at, before comes_before, const void* of) {
  for (;;) {
    const int64_t left = 2 * at + 1, right = left + 1, moved = heap[at];
    int64_t first = at;
    if (left < count && comes_before(heap[left], heap[first], of)) first = left;
    if (right < count && comes_before(heap[right], heap[first], of)) first = right;
    if (first == at) return;
    heap[at] = heap[first];
    heap[first] = moved;
    at = first;
  }
}

static void make_heap(int64_t* heap, int64_t count, before comes_before, const void* of) {
  for (int64_t at = count / 2; at-- > 0;) sift(heap, count, at, comes_before, of);
}

/* What is taken from the heap goes to its end: `comes_after` makes the last one the first of the heap. */
static void sort(int64_t* all, int64_t count, before comes_after, const void* of) {
  make_heap(all, count, comes_after, of);
  for (int64_t end = count - 1; end > 0; --end) {
    const int64_t last = all[0];
    all[0] = all[end];
    all[end] = last;
    sift(all, end, 0, comes_after, of);
  }
}

/* The last of `count` rows, again and again up to `most`. */
static void repeat_last(int64_t* rows, int64_t count, int64_t most, int64_t width) {
  for (int64_t row = count; row < most; ++row)
    for (int64_t i = 0; i < width; ++i) rows[row * width + i] = count > 0 ? rows[(count - 1) * width + i] : 0;
}

static int higher_score(int64_t a, int64_t b, const void* of) {
  const float *const scores = of, left = scores[a], right = scores[b];
  return left > right || (left == right && a < b);
}

struct box {
  float low[2], high[2];
};

static struct box box_of(const float* numbers, int is_centre) {
  struct box box;
  for (int d = 0; d < 2; ++d) {
    const float a = is_centre ? numbers[d] - numbers[d + 2] / 2 : numbers[d],
                b = is_centre ? numbers[d] + numbers[d + 2] / 2 : numbers[d + 2];
    box.low[d] = a < b ? a : b;
    box.high[d] = a < b ? b : a;
  }
  return box;
}

static double area_of(const struct box* box) {
  const float extent[2] = {box->high[0] - box->low[0], box->high[1] - box->low[1]};
  return (double)extent[0] * extent[1];
}

static int overlap(const float* first, const float* second, int is_centre, float threshold) {
  const struct box a = box_of(first, is_centre), b = box_of(second, is_centre);
  double extent[2]; /* products of two are exact: with or without fused multiply-adds the results are the same */
  for (int d = 0; d < 2; ++d) {
    const float low = a.low[d] > b.low[d] ? a.low[d] : b.low[d], high = a.high[d] < b.high[d] ? a.high[d] : b.high[d];
    if (high <= low) return 0;
    extent[d] = high - low;
  }
  const double common = extent[0] * extent[1], area_of_a = area_of(&a), area_of_b = area_of(&b),
               all = area_of_a + area_of_b - common;
  return area_of_a > 0 && area_of_b > 0 && all > 0 && common / all > threshold;
}

void graft_non_max_suppression(void* const* buffers, const int64_t* n) {
  const float *const boxes = buffers[0], *const all_scores = buffers[1];
  const float overlap_threshold = *(const float*)buffers[2], score_threshold = *(const float*)buffers[3];
  int64_t *const result = buffers[4], *const rows = result + header, most = n[0] * n[1] * n[3];
  int64_t *const heap = rows + 3 * most, count = 0;
  clear(result, header);
  for (int64_t batch = 0; batch < n[0]; ++batch)
    for (int64_t class = 0; class < n[1]; ++class) {
      const float* const scores = all_scores + (batch * n[1] + class) * n[2];
      const int64_t before_class = count;
      int64_t waiting = 0;
      for (int64_t box = 0; box < n[2]; ++box)
        if (!n[5] || scores[box] > score_threshold) heap[waiting++] = box;
      make_heap(heap, waiting, higher_score, scores);
      while (waiting > 0 && count - before_class < n[3]) {
        const int64_t box = heap[0];
        int is_free = 1;
        heap[0] = heap[--waiting];
        sift(heap, waiting, 0, higher_score, scores);
        for (int64_t row = before_class; row < count && is_free; ++row)
          is_free = !overlap(boxes + 4 * (batch * n[2] + box), boxes + 4 * (batch * n[2] + rows[3 * row + 2]),
                             n[4] != 0, overlap_threshold);
        if (!is_free) continue;
        rows[3 * count] = batch;
        rows[3 * count + 1] = class;
        rows[3 * count + 2] = box;
        ++count;
      }
    }
  result[0] = count;
  repeat_last(rows, count, most, 3);
  clear(heap, n[2]);
}

void graft_non_zero(void* const* buffers, const int64_t* n) {
  const uint8_t* const mask = buffers[0];
  int64_t *const result = buffers[1], count = 0;
  clear(result, header);
  for (int64_t at = 0; at < n[1]; ++at) {
    if (mask[at] == 0) continue;
    int64_t rest = at;
    for (int64_t d = n[0] - 1; d >= 0; --d) {
      result[header + d * n[1] + count] = rest % n[2 + d];
      rest /= n[2 + d];
    }
    ++count;
  }
  result[0] = count;
  for (int64_t d = 0; d < n[0]; ++d) repeat_last(result + header + d * n[1], count, n[1], 1);
}

struct rows {
  const void* numbers;
  int64_t width;
  int are_integers;
};

/* Below 0, 0 or above 0, as a is less than, equal to or larger than b, by their first number that differs. */
static int compared(const struct rows* of, int64_t a, int64_t b) {
  for (int64_t i = 0; i < of->width; ++i) {
    if (of->are_integers) {
      const int64_t *const all = of->numbers, left = all[a * of->width + i], right = all[b * of->width + i];
      if (left != right) return left < right ? -1 : 1;
    } else {
      const double *const all = of->numbers, left = all[a * of->width + i], right = all[b * of->width + i];
      if (left < right || left > right) return left < right ? -1 : 1;
    }
  }
  return 0;
}

static int larger_row(int64_t a, int64_t b, const void* of) {
  const int order = compared(of, a, b);
  return order > 0 || (order == 0 && a > b);
}

static int later_first(int64_t a, int64_t b, const void* of) {
  const int64_t* const first = of;
  return first[a] > first[b];
}

void graft_unique(void* const* buffers, const int64_t* n) {
  const struct rows of = {buffers[0], n[1], n[2] != 0};
  const int64_t rows = n[0];
  int64_t *const result = buffers[1], *const first = result + header, *const group = first + rows,
                 *const times = group + rows, *const order = times + rows, *const place = order + rows, count = 0;
  clear(result, header);
  for (int64_t row = 0; row < rows; ++row) order[row] = row;
  sort(order, rows, larger_row, &of);
  /* Equal rows are neighbours now, each group with its first one first. */
  for (int64_t i = 0; i < rows; ++i) {
    if (i == 0 || compared(&of, order[i - 1], order[i]) != 0) {
      first[count] = order[i];
      times[count] = 0;
      ++count;
    }
    group[order[i]] = count - 1;
    ++times[count - 1];
  }
  if (!n[3]) {
    for (int64_t g = 0; g < count; ++g) order[g] = g;
    sort(order, count, later_first, first);
    for (int64_t g = 0; g < count; ++g) place[order[g]] = g;
    for (int64_t row = 0; row < rows; ++row) group[row] = place[group[row]];
    for (int64_t g = 0; g < count; ++g) place[g] = first[order[g]];
    for (int64_t g = 0; g < count; ++g) first[g] = place[g];
    for (int64_t g = 0; g < count; ++g) place[g] = times[order[g]];
    for (int64_t g = 0; g < count; ++g) times[g] = place[g];
  }
  result[0] = count;
  repeat_last(first, count, rows, 1);
  repeat_last(times, count, rows, 1);
  clear(order, 2 * rows);
}

struct order {
  const void* numbers;
  int are_integers, is_largest;
};

static int chosen_first(int64_t a, int64_t b, const void* of) {
  const struct order* const order = of;
  int is_less, is_more;
  if (order->are_integers) {
    const int64_t* const all = order->numbers;
    is_less = all[a] < all[b];
    is_more = all[a] > all[b];
  } else {
    const double *const all = order->numbers, left = all[a], right = all[b];
    is_less = left < right || (left == left && right != right);
    is_more = left > right || (left != left && right == right);
  }
  if (is_less || is_more) return order->is_largest ? is_more : is_less;
  return a < b;
}

void graft_top_k(void* const* buffers, const int64_t* n) {
  int64_t *const result = buffers[1], *const heap = result + header + n[0] * n[2];
  clear(result, header);
  for (int64_t row = 0; row < n[0]; ++row) {
    const struct order order = {(const char*)buffers[0] + 8 * row * n[1], n[3] != 0, n[4] != 0};
    int64_t waiting = n[1];
    for (int64_t i = 0; i < n[1]; ++i) heap[i] = i;
    make_heap(heap, n[1], chosen_first, &order);
    for (int64_t k = 0; k < n[2]; ++k) {
      result[header + row * n[2] + k] = heap[0];
      heap[0] = heap[--waiting];
      sift(heap, waiting, 0, chosen_first, &order);
    }
  }
  result[0] = n[0];
  clear(heap, n[1]);
}

/* Both are at multiples of `bytes` from where memory is aligned to 8. */
static void copy(void* to, const void* from, int64_t bytes) {
  if (bytes % 8 == 0) {
    int64_t* const words = to;
    const int64_t* const all = from;
    for (int64_t i = 0; i < bytes / 8; ++i) words[i] = all[i];
  } else {
    char* const chars = to;
    const char* const all = from;
    for (int64_t i = 0; i < bytes; ++i) chars[i] = all[i];
  }
}

void graft_append(void* const* buffers, const int64_t* n) {
  static const int64_t element_bytes[] = {4, 8, 8, 4, 1, 1, 2, 2};
  const char *const cache = buffers[0], *const added = buffers[1];
  const int64_t* const begin = buffers[2];
  char* const result = buffers[3];
  const int64_t row = n[3] * element_bytes[n[5]];
  if (result != cache) copy(result, cache, n[0] * n[1] * n[2] * row);
  for (int64_t part = 0; part < n[0] * n[1]; ++part)
    for (int64_t i = 0; i < n[4]; ++i) {
      const int64_t place = begin[part / n[1]] + i;
      if (place >= 0 && place < n[2]) copy(result + (part * n[2] + place) * row, added + (part * n[4] + i) * row, row);
    }
}
