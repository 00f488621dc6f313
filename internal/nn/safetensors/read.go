package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// MaxHeader is the largest header that is read.
const MaxHeader = 100 << 20

// maxRank bounds the dimensions of a tensor.
const maxRank = 16

// File is what a tensor file holds, tensors sorted by name and widened to single precision.
type File struct {
	Tensors []Tensor
	Meta    map[string]string
}

// Get returns the named tensor.
func (f *File) Get(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(f.Tensors, name, func(t Tensor, n string) int { return strings.Compare(t.Name, n) })
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// ReadFile reads a whole file.
func ReadFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return Read(f, st.Size())
}

// Read reads size bytes. Types F32, F16 and BF16 are accepted. The data must lie in the file without gap or overlap.
func Read(r io.ReaderAt, size int64) (*File, error) {
	var b [8]byte
	if size < 8 {
		return nil, bad("%d bytes are too few for a header", size)
	}
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(b[:])
	if n > MaxHeader || int64(n) > size-8 {
		return nil, bad("the header of %d bytes exceeds the file of %d or the limit of %d", n, size, MaxHeader)
	}
	head := make([]byte, n)
	if _, err := r.ReadAt(head, 8); err != nil {
		return nil, err
	}
	entries, meta, err := parseHeader(head)
	if err != nil {
		return nil, err
	}
	f := &File{Meta: meta}
	at := int64(0)
	slices.SortFunc(entries, func(a, b named) int {
		if a.Offsets != b.Offsets {
			return slices.Compare(a.Offsets[:], b.Offsets[:])
		}
		return strings.Compare(a.name, b.name)
	})
	for _, e := range entries {
		if err := e.check(at, size-8-int64(n)); err != nil {
			return nil, err
		}
		at = e.Offsets[1]
	}
	if at != size-8-int64(n) {
		return nil, bad("%d bytes after the header belong to no tensor", size-8-int64(n)-at)
	}
	for _, e := range entries {
		raw := make([]byte, e.Offsets[1]-e.Offsets[0])
		if _, err := r.ReadAt(raw, 8+int64(n)+e.Offsets[0]); err != nil && !(err == io.EOF && len(raw) == 0) {
			return nil, err
		}
		f.Tensors = append(f.Tensors, Tensor{e.name, e.Shape, widen(e.DType, raw)})
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

func bad(format string, args ...any) error {
	return errs.New(errs.Invalid, "not a usable safetensors file: "+format, args...)
}

type named struct {
	name string
	entry
}

// check refuses what does not lie in the data right behind the previous tensor.
func (e named) check(at, size int64) error {
	width, ok := map[string]int64{"F32": 4, "F16": 2, "BF16": 2}[e.DType]
	if !ok {
		return bad("tensor %.80q has type %.20q; allowed: F32, F16, BF16", e.name, e.DType)
	}
	n, ok := elements(e.Shape)
	if !ok {
		return bad("tensor %.80q has an impossible shape", e.name)
	}
	if e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1] > size || e.Offsets[1]-at != n*width {
		return bad("tensor %.80q lies at %v; expected %d bytes at %d within %d", e.name, e.Offsets, n*width, at, size)
	}
	return nil
}

// elements multiplies a shape; false if a dimension is negative or the product is beyond any file.
func elements(shape []int) (int64, bool) {
	if len(shape) > maxRank {
		return 0, false
	}
	n, empty := int64(1), false
	for _, s := range shape {
		if s < 0 || int64(s) > 1<<40 {
			return 0, false
		}
		if s == 0 {
			empty = true
			continue
		}
		if n > 1<<40/int64(s) {
			return 0, false
		}
		n *= int64(s)
	}
	if empty {
		return 0, true
	}
	return n, true
}

// parseHeader reads the JSON object token by token, so that a name appearing twice is seen.
func parseHeader(head []byte) ([]named, map[string]string, error) {
	dec := json.NewDecoder(bytes.NewReader(head))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, nil, bad("the header is not a JSON object")
	}
	var out []named
	var meta map[string]string
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return nil, nil, bad("the header is not valid JSON")
		}
		if seen[name] {
			return nil, nil, bad("the name %.80q appears twice", name)
		}
		seen[name] = true
		if name == metaKey {
			if err := dec.Decode(&meta); err != nil {
				return nil, nil, bad("the metadata must be an object of strings")
			}
			continue
		}
		e := named{name: name}
		if err := dec.Decode(&e.entry); err != nil {
			return nil, nil, bad("the entry of tensor %.80q is not valid", name)
		}
		out = append(out, e)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, bad("the header is not valid JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, bad("there is text after the header's object")
	}
	return out, meta, nil
}

func widen(dtype string, raw []byte) []float32 {
	if dtype == "F32" {
		out := make([]float32, len(raw)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return out
	}
	out := make([]float32, len(raw)/2)
	for i := range out {
		h := binary.LittleEndian.Uint16(raw[2*i:])
		if dtype == "BF16" {
			out[i] = math.Float32frombits(uint32(h) << 16)
		} else {
			out[i] = half(h)
		}
	}
	return out
}

// half widens an IEEE half-precision number.
func half(h uint16) float32 {
	sign, exp, frac := float32(1), int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * float32(math.Ldexp(frac, -24))
	case 31:
		if frac != 0 {
			return float32(math.NaN())
		}
		return sign * float32(math.Inf(1))
	}
	return sign * float32(math.Ldexp(1024+frac, exp-25))
}
