package kernel

//go:generate go run -tags kernelgen gen/main.go -out avx2_amd64.s -stubs avx2_amd64.go -pkg kernel
