// C = A B for square matrices of N rows. A work-item computes TM x TN elements, a group BM x BN of these; A goes through
// local memory in blocks of TK columns if USE_LOCAL. Compiled with -D for each of them, VW (width of vectors), UNROLL.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if VW == 1
typedef float vec;
#define LOAD(p) (*(p))
#define STORE(v, p) (*(p) = (v))
#else
typedef JOIN(float, VW) vec;
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) JOIN(vstore, VW)(v, 0, p)
#endif

__kernel __attribute__((reqd_work_group_size(BN, BM, 1))) void matmul(__global const float* restrict a,
                                                                    __global const float* restrict b,
                                                                    __global float* restrict c) {
  const int row = get_global_id(1) * TM, column = get_global_id(0) * TN;
  vec sum[TM][TN / VW];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN / VW; ++j) sum[i][j] = 0;
#if USE_LOCAL
  __local float block[BM * TM][TK];
  const int first = get_group_id(1) * BM * TM, item = get_local_id(1) * BN + get_local_id(0);
#endif
  for (int kk = 0; kk < N; kk += TK) {
#if USE_LOCAL
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int at = item; at < BM * TM * TK; at += BM * BN) block[at / TK][at % TK] = a[(first + at / TK) * N + kk + at % TK];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#pragma unroll UNROLL
    for (int k = 0; k < TK; ++k) {
      for (int i = 0; i < TM; ++i) {
#if USE_LOCAL
        const float left = block[get_local_id(1) * TM + i][k];
#else
        const float left = a[(row + i) * N + kk + k];
#endif
        for (int j = 0; j < TN / VW; ++j) sum[i][j] += left * LOAD(b + (kk + k) * N + column + j * VW);
      }
    }
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN / VW; ++j) STORE(sum[i][j], c + (row + i) * N + column + j * VW);
}
