//go:build openblas && cgo

package bench

/*
#cgo LDFLAGS: -lopenblas
extern void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc);
extern void openblas_set_num_threads(int n);
extern char *openblas_get_corename(void);
*/
import "C"

// baseline multiplies with single-threaded OpenBLAS.
func baseline() (name string, gemm func(m, n, k int, a, b, c []float32)) {
	C.openblas_set_num_threads(1)
	name = "OpenBLAS " + C.GoString(C.openblas_get_corename())
	return name, func(m, n, k int, a, b, c []float32) {
		C.cblas_sgemm(101, 111, 111, C.int(m), C.int(n), C.int(k), 1, (*C.float)(&a[0]), C.int(k), (*C.float)(&b[0]),
			C.int(n), 0, (*C.float)(&c[0]), C.int(n))
	}
}
