// Package nn is a small decoder-only transformer that trains and samples on the CPU (compute.md).
//
// A Model holds the weights, a Trainer computes losses and gradients on packed sequences and steps AdamW, and a Decoder
// samples from a Packed, which is an immutable weight set laid out for the kernels. Every row of every product is
// computed in the same order whatever stands beside it, so a token's log-prob has the same bits in a training forward
// pass, in a prefill and in a decoding step of any batch size, and for any number of threads.
package nn
