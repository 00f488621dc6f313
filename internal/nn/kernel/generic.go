package kernel

// genericTile multiplies m rows by one packed panel in plain Go. Two rows by four columns keep their eight sums in
// registers. The conversions forbid fused multiply-adds, so a row has the same bits in the paired and the single loop.
func genericTile(m, kc int, a []float32, rs, cs int, panel, c []float32, ldc int, acc bool) {
	i := 0
	for ; i+1 < m; i += 2 {
		for j := 0; j < NR; j += 4 {
			pair(kc, a[i*rs:], a[(i+1)*rs:], cs, panel[j:], c[i*ldc+j:], c[(i+1)*ldc+j:], acc)
		}
	}
	if i < m {
		for j := 0; j < NR; j += 4 {
			single(kc, a[i*rs:], cs, panel[j:], c[i*ldc+j:], acc)
		}
	}
}

func pair(kc int, a0, a1 []float32, cs int, b, c0, c1 []float32, acc bool) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	at := 0
	for p := range kc {
		bp := (*[4]float32)(b[p*NR:])
		x, y := a0[at], a1[at]
		s00 += float32(x * bp[0])
		s10 += float32(y * bp[0])
		s01 += float32(x * bp[1])
		s11 += float32(y * bp[1])
		s02 += float32(x * bp[2])
		s12 += float32(y * bp[2])
		s03 += float32(x * bp[3])
		s13 += float32(y * bp[3])
		at += cs
	}
	d0, d1 := (*[4]float32)(c0), (*[4]float32)(c1)
	if acc {
		s00, s01, s02, s03 = d0[0]+s00, d0[1]+s01, d0[2]+s02, d0[3]+s03
		s10, s11, s12, s13 = d1[0]+s10, d1[1]+s11, d1[2]+s12, d1[3]+s13
	}
	*d0 = [4]float32{s00, s01, s02, s03}
	*d1 = [4]float32{s10, s11, s12, s13}
}

func single(kc int, a []float32, cs int, b, c []float32, acc bool) {
	var s0, s1, s2, s3 float32
	at := 0
	for p := range kc {
		bp := (*[4]float32)(b[p*NR:])
		x := a[at]
		s0 += float32(x * bp[0])
		s1 += float32(x * bp[1])
		s2 += float32(x * bp[2])
		s3 += float32(x * bp[3])
		at += cs
	}
	d := (*[4]float32)(c)
	if acc {
		s0, s1, s2, s3 = d[0]+s0, d[1]+s1, d[2]+s2, d[3]+s3
	}
	*d = [4]float32{s0, s1, s2, s3}
}
