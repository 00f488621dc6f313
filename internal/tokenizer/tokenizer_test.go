package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

var corpus = []string{
	"You are in the middle of a room. Looking quickly around you, you see a desk 1, a desk 2, and a drawer 1.",
	"Your task is to: put a mug in desk.",
	"You arrive at desk 1. On the desk 1, you see a mug 2, and a pencil 1.",
	"Nothing happens.",
	"go to desk 1", "go to desk 2", "go to drawer 1", "take mug 2 from desk 1", "move mug 2 to desk 1",
	"You pick up the mug 2 from the desk 1.", "You move the mug 2 to the desk 1.",
}

func trained(t testing.TB, vocab int) *Tokenizer {
	t.Helper()
	texts := slices.Concat(corpus, corpus)
	tok, err := Train(slices.Values(texts), TrainOptions{VocabSize: vocab, Special: []string{"<|pad|>", "<|end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSplitWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want []string
	}{
		{"go to desk 12.", []string{"go", " to", " desk", " 12", "."}},
		{"a_b c3d", []string{"a_b", " c", "3", "d"}},
		{"one\n\n  two", []string{"one", "\n", "\n", " ", " two"}},
		{" !x", []string{" ", "!", "x"}},
		{"größe é٣", []string{"größe", " é", "٣"}},
		{"a\xffb", []string{"a", "\xff", "b"}},
		{"☃ x", []string{"☃", " x"}},
	}
	for _, tt := range tests {
		var got []string
		for s := tt.text; s != ""; {
			n := splitWords(s)
			got = append(got, s[:n])
			s = s[n:]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestPatternsOfLargeModels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		split      splitter
		want       []string
	}{
		{"gpt2", "I'm  here, it's 2024!\n\n ok ", scanner{digits: -1}.gpt2,
			[]string{"I", "'m", " ", " here", ",", " it", "'s", " 2024", "!", "\n\n", " ok", " "}},
		{"gpt2 case", "I'M", scanner{digits: -1}.gpt2, []string{"I", "'", "M"}},
		{"qwen2", "I'M  here, it's 2024!\n\n ok ", scanner{digits: 1}.modern,
			[]string{"I", "'M", " ", " here", ",", " it", "'s", " ", "2", "0", "2", "4", "!\n\n", " ok", " "}},
		{"qwen2 newlines", "a  \n  b\t(c) _d", scanner{digits: 1}.modern,
			[]string{"a", "  \n", " ", " b", "\t", "(c", ")", " _", "d"}},
		{"llama3", "x12345 \n", scanner{digits: 3}.modern, []string{"x", "123", "45", " \n"}},
		{"qwen2 accents", "été naïve", scanner{digits: 1}.modern, []string{"été", " naïve"}},
	}
	for _, tt := range tests {
		var got []string
		for s := tt.text; s != ""; {
			n := tt.split(s)
			got = append(got, s[:n])
			s = s[n:]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The classic worked example of BPE: hug x10, pug x5, pun x12, bun x4, hugs x5 gives "u g", "u n", "h ug".
func TestTrainGolden(t *testing.T) {
	t.Parallel()
	var texts []string
	for word, n := range map[string]int{"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5} {
		for range n {
			texts = append(texts, word)
		}
	}
	tok, err := Train(slices.Values(texts), TrainOptions{VocabSize: 256 + 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for id := int32(256); int(id) < tok.VocabSize(); id++ {
		got = append(got, tok.Token(id))
	}
	if want := []string{"ug", "un", "hug"}; !slices.Equal(got, want) {
		t.Errorf("merges %q, want %q", got, want)
	}
	if got, want := tok.Encode("bug"), []int32{'b', 256}; !slices.Equal(got, want) {
		t.Errorf("bug: %v, want %v", got, want)
	}
	if got, want := tok.Encode("hugs pun"), []int32{258, 's', ' ', 'p', 257}; !slices.Equal(got, want) {
		t.Errorf("hugs pun: %v, want %v", got, want)
	}
}

func TestTrainIsDeterministicAndStops(t *testing.T) {
	t.Parallel()
	a, b := trained(t, 512), trained(t, 512)
	var x, y bytes.Buffer
	if err := a.Write(&x); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(&y); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x.Bytes(), y.Bytes()) {
		t.Error("two trainings on the same text differ")
	}
	if n := a.VocabSize(); n >= 512 || n < 300 {
		t.Errorf("vocabulary %d; merging must stop when no pair is left", n)
	}
	for _, w := range []string{" desk", " you", "go", " mug"} {
		if ids := a.Encode(w); len(ids) != 1 {
			t.Errorf("%q takes %d tokens", w, len(ids))
		}
	}
	if ids := a.Encode("go to desk 1"); len(ids) != 4 {
		t.Errorf("a command of four words takes %d tokens", len(ids))
	}
}

func TestTrainRefuses(t *testing.T) {
	t.Parallel()
	for _, opt := range []TrainOptions{
		{VocabSize: 255},
		{VocabSize: 257, Special: []string{"<a>", "<b>"}},
		{VocabSize: maxVocab + 1},
		{VocabSize: 300, Special: []string{"<a>", "<a>"}},
		{VocabSize: 300, Special: []string{""}},
	} {
		if _, err := Train(slices.Values(corpus), opt); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}

func TestSpecialTokensNeverComeFromText(t *testing.T) {
	t.Parallel()
	tok := trained(t, 400)
	end, ok := tok.Special("<|end|>")
	if !ok {
		t.Fatal("special token lost")
	}
	ids := tok.Encode("a <|end|> b<|pad|>")
	for _, id := range ids {
		if tok.IsSpecial(id) {
			t.Errorf("text became the special token %q", tok.Token(id))
		}
	}
	if got := tok.Decode(append(ids, end)); got != "a <|end|> b<|pad|><|end|>" {
		t.Errorf("decoded %q", got)
	}
	if got := tok.DecodeText([]int32{'x', end, -1, 1 << 30}); got != "x" {
		t.Errorf("decoded %q", got)
	}
}

func TestLongWordEqualsShortAlgorithm(t *testing.T) {
	t.Parallel()
	tok := trained(t, 400)
	for _, word := range []string{strings.Repeat("desk", 100), strings.Repeat("youuyo", 90), strings.Repeat("a", 300)} {
		ids := make([]int32, len(word))
		for i := range len(word) {
			ids[i] = tok.byteID[word[i]]
		}
		long := tok.mergeLong(slices.Clone(ids))
		var short []int32
		for short = ids; ; {
			best, at := merged{}, -1
			for i := 0; i+1 < len(short); i++ {
				if m, ok := tok.rank[pair{short[i], short[i+1]}]; ok && (at < 0 || m.rank < best.rank) {
					best, at = m, i
				}
			}
			if at < 0 {
				break
			}
			short[at] = best.id
			short = slices.Delete(short, at+1, at+2)
		}
		if !slices.Equal(long, short) {
			t.Errorf("%.20q: %d tokens, want %d", word, len(long), len(short))
		}
	}
}

func TestEncodeConcurrently(t *testing.T) {
	t.Parallel()
	tok := trained(t, 400)
	want := fmt.Sprint(tok.Encode(corpus[0]))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				tok.Encode(fmt.Sprintf("word%d %d", i, i))
				if got := fmt.Sprint(tok.Encode(corpus[0])); got != want {
					t.Error("encoding changed")
				}
			}
		})
	}
	wg.Wait()
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	tok := trained(t, 400)
	var a bytes.Buffer
	if err := tok.Write(&a); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(a.Bytes()) {
		t.Fatal("not JSON")
	}
	back, err := Read(bytes.NewReader(a.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := back.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("reading and writing changes the file")
	}
	if back.VocabSize() != tok.VocabSize() {
		t.Errorf("vocabulary %d, want %d", back.VocabSize(), tok.VocabSize())
	}
	for _, text := range append(corpus, "new words, \xff\xfe <b>&amp; 日本") {
		if got, want := back.Encode(text), tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	tok := trained(f, 400)
	for _, s := range append(corpus, "\xff\xc3", "<|end|>", " \n\t ", "日本 1٣") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text)
		for _, id := range ids {
			if tok.IsSpecial(id) {
				t.Fatal("special token from text")
			}
		}
		if got := tok.DecodeText(ids); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}
