/* Functions for what a loop over indices does not say, because how much there is, or where, depends on numbers. They are
   part of graft, which checks with them, and of libraries that it writes, for any processor: C11 without a library,
   without memory of their own, exactly the same results everywhere.

   `buffers`: the operands, in order, then the result, all row-major. `n`: extents and settings. Results are int64 (but of
   graft_append): element 0 is the number of valid rows, and rows begin at element 8. The remaining rows repeat the last valid one (or
   are zeros if there is none), so that gathering at these indices and scattering back there gives right results. Working
   space follows the rows; it is zeroed at the end. */
#ifndef GRAFT_FOREIGN_H
#define GRAFT_FOREIGN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As ONNX's NonMaxSuppression (and as onnxruntime decides between equal scores: the first one). Operands: boxes f32
   [n[0], n[2], 4], scores f32 [n[0], n[1], n[2]], the threshold of overlaps f32 [1], that of scores f32 [1].
   n[3]: boxes of a class at most (<= n[2]); n[4]: 1 if boxes are centre x, centre y, width, height, 0 if they are two
   corners y, x, y, x; n[5]: 1 if there is a threshold of scores.
   Rows of 3: batch, class, box; n[0] n[1] n[3] of them; then n[2] to work. */
void graft_non_max_suppression(void* const* buffers, const int64_t* n);

/* Places of u8 [n[1]] that are not 0, in the shape n[2], n[3], ... of n[0] dimensions. n[0] rows of n[1] places, one for
   each dimension. [0] counts places. */
void graft_non_zero(void* const* buffers, const int64_t* n);

/* The different rows of [n[0], n[1]], which are int64 (n[2] is 1) or double. n[3]: 1 if they are sorted, 0 if they stay
   in the order in which they first occur. Three rows of n[0]: where each occurs first, for each row of the operand which
   one of these it is, how often each occurs; then 2 n[0] to work. [0] counts different rows. */
void graft_unique(void* const* buffers, const int64_t* n);

/* The n[2] largest (n[4] is 1) or least (0) of each row of [n[0], n[1]], which are int64 (n[3] is 1) or double, in order:
   equal ones as they come; NaN is larger than all numbers. n[0] rows of n[2] places; then n[1] to work. [0] is n[0]. */
void graft_top_k(void* const* buffers, const int64_t* n);

/* A cache [n[0], n[1], n[2], n[3]] of elements of type n[5] (0: f32, 1: f64, 2: i64, 3: i32, 4: i8, 5: u8, 6: f16,
   7: bf16) with new rows [n[0], n[1], n[4], n[3]], which go to the places begin[b] and following ones, begin int64 [n[0]];
   those outside of the cache are left out. The result may be the memory of the cache: then only the new rows are
   written. */
void graft_append(void* const* buffers, const int64_t* n);

#ifdef __cplusplus
}
#endif

#endif
