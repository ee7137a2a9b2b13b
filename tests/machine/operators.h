// Every operator of the table, small, and expressions of every type and operation.
#pragma once

namespace graft::codegen::test {

inline constexpr const char* workloads[] = {
    "matmul(m=20,n=35,k=24)",
    "matmul(m=16,n=48,k=32,dtype=f64)",
    "matmul(m=9,n=33,k=17,dtype=i32)",
    "input A[9,17] : u8; input B[17,33] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=9, j=33, l=17",
    "matmul(m=9,n=33,k=17,dtype=i8)",
    "input A[50] : u8; input B[50] : i8; output M[i] : u8 = max(A[i] + 200, B[i]); output F[i] = A[i] * 0.5 - B[i];"
    "output L[z] : u8 max= A[i]; output K[z] : i8 min= cast_i8(A[i]) where i=50, z=1",
    "dense(m=7,n=40,k=19)",
    "conv2d(c=5,h=9,w=11,k=18,r=3,s=3,stride=2,pad=1)",
    "conv2d_nchwc(c=8,h=7,w=7,k=16,r=3,s=3,pad=1,block=8)",
    "depthwise_conv2d(c=6,h=12,w=20,r=3,s=3,pad=1)",
    "conv2d_nhwc(c=5,h=9,w=11,k=18,r=3,s=3,stride=2,pad=1)",
    "depthwise_conv2d_nhwc(c=20,h=7,w=9,r=3,s=3,pad=1)",
    "input A[6,50]; M[i] max= A[i,l]; E[i,j] = exp(A[i,j] - M[i]); S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i] "
    "where i=6, j=50, l=50",
    "input Q[37,3,11]; input K[29,3,11]; input V[29,3,21]; input m[37,29]; S[h,i,j] += Q[i,h,l] * K[j,h,l]; T[h,i,j] = "
    "S[h,i,j] "
    "/ 3 + m[i,j]; M[h,i] max= T[h,i,j]; E[h,i,j] = exp(T[h,i,j] - M[h,i]); D[h,i] += E[h,i,j]; O[h,i,d] += E[h,i,j] * "
    "V[j,h,d]; output Y[i,h,d] = O[h,i,d] / D[h,i] where h=3, i=37, j=29, l=11, d=21",
    "input A[40]; output Y[i] = sqrt(A[i] * A[i] + 1) where i=40",
    "input A[6,50]; T[i,j] = tanh(A[i,j]) * sigmoid(A[i,j] * 4) + erf(A[i,j] * 2); S[i] += abs(T[i,l]) + "
    "pow(abs(A[i,l]) + "
    "1, 3); output Y[i,j] = select(A[i,j] > 0, T[i,j] * rsqrt(S[i]), log(A[i,j] + 2) + floor(A[i,j] * 4)) "
    "where i=6, j=50, l=50",
    "input A[9,40] : f64; output Y[i,j] : f64 = select(A[i,j] <= 0, pow(1 - A[i,j], 1.5) + erf(A[i,j]), tanh(A[i,j])) "
    "where i=9, j=40",
    "input A[50] : i8; output Y[i] : i8 = select(A[i] < 3, abs(A[i]), A[i]) where i=50",
    "input A[5,77] : i8; output S[i] : i32 += A[i,l] * A[i,l] where i=5, l=77",
    "input A[5,77] : f64; input B[77] : f64; output S[i] : f64 max= A[i,l] - B[l] where i=5, l=77",
    "input A[5,37]; input B[37]; output P[i] *= 1 + A[i,l] * B[l] where i=5, l=37",
    "input A[37,50] : f64; output P[j] : f64 *= 1.5 + A[l,j] where j=50, l=37",
    "input A[5,77] : u8; output P[i] : i32 *= 2 * A[i,l] + 1; output Q[i] : u8 *= 2 * A[i,l] + 1 where i=5, l=77",
    "input A[6,50]; output Y[i,j] = sin(A[i,j] * 9) + cos(A[i,j] * j) where i=6, j=50",
    "input A[33,33]; T[i,j] = select(j <= i, A[i,j], -inf); M[i] max= T[i,l]; E[i,j] = exp(T[i,j] - M[i]); "
    "S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i] where i=33, j=33, l=33",
    // NaN in three of six rows.
    "input A[6,50]; N[i,j] = select(j == 5 * i - 15, (A[i,j] - A[i,j]) / (A[i,j] - A[i,j]), A[i,j]); "
    "M[i] max= N[i,l]; L[i] min= N[i,l]; output Y[i,j] = max(N[i,j], 0) + min(0.5, N[i,j]) + exp(N[i,j]); "
    "output Z[i,j] = max(N[i,j], A[i,j]) + min(A[i,j], N[i,j]); output W[i,j] = M[i] - L[i] + A[i,j] "
    "where i=6, j=50, l=50",
};

}  // namespace graft::codegen::test
