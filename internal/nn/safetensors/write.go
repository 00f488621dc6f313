// Package safetensors reads and writes tensor files: an 8-byte little-endian header length, a JSON header, then raw
// little-endian data without gaps (compute.md 10).
package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// Tensor is one named array, row-major.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// entry is a tensor's line in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

const metaKey = "__metadata__"

// Write stores tensors as F32, sorted by name and with the header padded to 8 bytes, so that equal tensors and metadata
// give equal bytes.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	header, err := header(sorted, meta)
	if err != nil {
		return err
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(len(header)))
	bw.Write(b[:])
	bw.Write(header)
	for _, t := range sorted {
		for _, v := range t.Data {
			binary.LittleEndian.PutUint32(b[:4], math.Float32bits(v))
			bw.Write(b[:4])
		}
	}
	return bw.Flush() // reports the first failed write
}

func header(sorted []Tensor, meta map[string]string) ([]byte, error) {
	var s strings.Builder
	s.WriteByte('{')
	if len(meta) > 0 {
		m, err := json.Marshal(meta) // keys come out sorted
		if err != nil {
			return nil, err
		}
		s.WriteString(`"` + metaKey + `":`)
		s.Write(m)
	}
	at := int64(0)
	for i, t := range sorted {
		if n, ok := elements(t.Shape); !ok || n != int64(len(t.Data)) {
			return nil, errs.New(errs.Invalid, "tensor %q has shape %v but %d numbers", t.Name, t.Shape, len(t.Data))
		}
		if t.Name == "" || t.Name == metaKey || i > 0 && t.Name == sorted[i-1].Name {
			return nil, errs.New(errs.Invalid, "tensor name %q is reserved or appears twice", t.Name)
		}
		end := at + 4*int64(len(t.Data))
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, err
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		line, err := json.Marshal(entry{"F32", shape, [2]int64{at, end}})
		if err != nil {
			return nil, err
		}
		if s.Len() > 1 {
			s.WriteByte(',')
		}
		s.Write(name)
		s.WriteByte(':')
		s.Write(line)
		at = end
	}
	s.WriteByte('}')
	for s.Len()%8 != 0 {
		s.WriteByte(' ')
	}
	return []byte(s.String()), nil
}

// WriteFile writes path and flushes it to the disk. It does not rename; a caller that needs that writes a temporary name.
func WriteFile(path string, tensors []Tensor, meta map[string]string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if err := Write(f, tensors, meta); err != nil {
		return err
	}
	return f.Sync()
}
