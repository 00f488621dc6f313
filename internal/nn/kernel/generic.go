package kernel

// genericTile multiplies m rows by one packed panel in plain Go. Two rows by two columns, two steps of k at a time, are
// what the compiler keeps in registers without spilling a sum. The conversions forbid fused multiply-adds, and a single
// last row is paired with itself, so a row has the same bits wherever it stands.
func genericTile(m, kc int, a []float32, rs, cs int, panel, c []float32, ldc int, acc bool) {
	var pairs [KC][2]float32
	panel = panel[:kc*NR]
	for i := 0; i < m; i += 2 {
		second := min(i+1, m-1)
		interleave(pairs[:kc], a[i*rs:], a[second*rs:], cs)
		for j := 0; j < NR; j += 2 {
			s00, s01, s10, s11 := pair(pairs[:kc], panel, j)
			put2(c[i*ldc+j:], s00, s01, acc)
			if second > i {
				put2(c[second*ldc+j:], s10, s11, acc)
			}
		}
	}
}

func interleave(dst [][2]float32, x, y []float32, cs int) {
	at := 0
	for p := range dst {
		dst[p] = [2]float32{x[at], y[at]}
		at += cs
	}
}

// pair returns the sums of two rows and the two columns from j on.
func pair(rows [][2]float32, b []float32, j int) (s00, s01, s10, s11 float32) {
	j &= 14
	for len(rows) >= 2 && len(b) >= 2*NR {
		rp, bp := (*[2][2]float32)(rows), (*[2 * NR]float32)(b)
		x, y, u, v := rp[0][0], rp[0][1], bp[j], bp[j+1]
		s00 += float32(x * u)
		s10 += float32(y * u)
		s01 += float32(x * v)
		s11 += float32(y * v)
		x, y, u, v = rp[1][0], rp[1][1], bp[NR+j], bp[NR+j+1]
		s00 += float32(x * u)
		s10 += float32(y * u)
		s01 += float32(x * v)
		s11 += float32(y * v)
		rows, b = rows[2:], b[2*NR:]
	}
	if len(rows) > 0 && len(b) >= NR {
		bp := (*[NR]float32)(b)
		x, y, u, v := rows[0][0], rows[0][1], bp[j], bp[j+1]
		s00 += float32(x * u)
		s10 += float32(y * u)
		s01 += float32(x * v)
		s11 += float32(y * v)
	}
	return s00, s01, s10, s11
}

// put2 stores two sums, or adds them to what is there.
func put2(c []float32, x, y float32, acc bool) {
	d := (*[2]float32)(c)
	if acc {
		x, y = d[0]+x, d[1]+y
	}
	d[0], d[1] = x, y
}
