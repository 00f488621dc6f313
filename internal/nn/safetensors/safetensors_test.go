package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func raw(header string, data ...byte) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, uint64(len(header)))
	b = append(b, header...)
	return append(b, data...)
}

func parse(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestWriteThenRead(t *testing.T) {
	t.Parallel()
	in := []Tensor{
		{"b", []int{2, 3}, []float32{1, -2, 3.5, 0, float32(math.Inf(1)), -0.25}},
		{"a \"quoted\" ü", []int{}, []float32{7}},
		{"empty", []int{0, 4}, []float32{}},
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := WriteFile(path, in, map[string]string{"step": "12"}); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Meta["step"] != "12" || len(f.Tensors) != 3 {
		t.Fatalf("read %+v", f)
	}
	for _, want := range in {
		got, ok := f.Get(want.Name)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", want.Name, got, want)
		}
	}
	if _, ok := f.Get("c"); ok {
		t.Error("found a tensor that is not there")
	}
}

func TestWritingIsCanonical(t *testing.T) {
	t.Parallel()
	a, b := Tensor{"a", []int{1}, []float32{1}}, Tensor{"b", []int{2}, []float32{2, 3}}
	var x, y bytes.Buffer
	if err := Write(&x, []Tensor{a, b}, map[string]string{"k": "v", "j": "w"}); err != nil {
		t.Fatal(err)
	}
	if err := Write(&y, []Tensor{b, a}, map[string]string{"j": "w", "k": "v"}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x.Bytes(), y.Bytes()) {
		t.Error("the order of the input shows in the file")
	}
	if n := binary.LittleEndian.Uint64(x.Bytes()); n%8 != 0 {
		t.Errorf("the header has %d bytes, not a multiple of 8", n)
	}
	for name, ts := range map[string][]Tensor{
		"twice": {a, a}, "shape": {{"x", []int{2}, []float32{1}}}, "reserved": {{metaKey, []int{1}, []float32{1}}},
	} {
		if err := Write(&bytes.Buffer{}, ts, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadHalfPrecision(t *testing.T) {
	t.Parallel()
	f, err := parse(raw(`{"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]}}`,
		0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x7b, 0x00, 0x7c, 0x55, 0x35, 0x80, 0x3f, 0x20, 0xc0))
	if err != nil {
		t.Fatal(err)
	}
	h, _ := f.Get("h")
	b, _ := f.Get("b")
	if got := fmt.Sprint(h.Data, b.Data); got != "[1 -2 5.9604645e-08 65504 +Inf 0.33325195] [1 -2.5]" {
		t.Errorf("read %s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const ok = `"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"short":         {[]byte{1, 2}, "too few"},
		"long header":   {raw("")[:8:8], ""},
		"huge header":   {append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1, 2, 3), "exceeds"},
		"beyond file":   {append([]byte{200, 0, 0, 0, 0, 0, 0, 0}, "{}"...), "exceeds"},
		"no object":     {raw(`[1]`), "not a JSON object"},
		"broken":        {raw(`{"x":`), "not valid"},
		"trailing":      {raw(`{}{}`), "after the header"},
		"gap":           {raw(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...), "expected"},
		"overlap":       {raw(`{`+ok+`,"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, make([]byte, 6)...), "expected"},
		"past the end":  {raw(`{`+ok+`}`, 1, 2), "expected"},
		"left over":     {raw(`{`+ok+`}`, make([]byte, 5)...), "no tensor"},
		"backwards":     {raw(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, make([]byte, 4)...), "expected"},
		"type":          {raw(`{"x":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, make([]byte, 8)...), "type"},
		"shape":         {raw(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)...), "expected"},
		"negative":      {raw(`{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, make([]byte, 4)...), "shape"},
		"overflow":      {raw(`{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), "shape"},
		"twice":         {raw(`{`+ok+`,`+ok+`}`, make([]byte, 4)...), "twice"},
		"metadata":      {raw(`{"__metadata__":{"a":1}}`), "metadata"},
		"entry no dict": {raw(`{"x":3}`), "entry"},
	} {
		f, err := parse(c.data)
		if err == nil {
			t.Errorf("%s: read %+v", name, f)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var good bytes.Buffer
	if err := Write(&good, []Tensor{{"a", []int{2}, []float32{1, 2}}, {"b", nil, []float32{3}}}, map[string]string{"k": "v"}); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add(raw(`{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 1, 2))
	f.Add(raw(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, x := range file.Tensors { // what was accepted can be written
			if x.Name == "" {
				return
			}
		}
		if err := Write(&again, file.Tensors, file.Meta); err != nil {
			t.Fatalf("a file that was read cannot be written: %v", err)
		}
	})
}
