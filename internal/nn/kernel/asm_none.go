//go:build !amd64 || purego

package kernel

func haveAsm() bool { return false }

func asmTile(mr, count, kc int, a []float32, rs, ks, ts int, b, c []float32, ldc int, acc bool) {}

func dotVec(x, y *float32, n int) float32                 { return 0 }
func sumVec(x *float32, n int) float32                    { return 0 }
func maxVec(x *float32, n int) float32                    { return 0 }
func axpyVec(y, x *float32, n int, a float32)             {}
func scaleAddVec(dst, x, y *float32, n int, a, b float32) {}
func mulScaleVec(dst, x, g *float32, n int, a float32)    {}
func mulAddVec(dst, x, g *float32, n int, a float32)      {}
func softGradVec(dst, p, dp *float32, n int, d float32)   {}
func expVec(dst, x *float32, n int, m float32)            {}
func siluMulVec(dst, g, u *float32, n int)                {}
func siluGradVec(act, dg, du, g, u, dact *float32, n int) {}

func copyPanel(dst, src *float32, rows, ld int)        {}
func transposePanel(dst, src *float32, blocks, ld int) {}
