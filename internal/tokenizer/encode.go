package tokenizer

// maxCached bounds the word cache; when it is full it starts again empty.
const maxCached = 1 << 16

// maxCachedWord is the longest word, in bytes, that is remembered.
const maxCachedWord = 64

// Encode returns the ids of text.
func (t *Tokenizer) Encode(text string) []int32 { return t.AppendEncode(nil, text) }

// AppendEncode appends the ids of text to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string) []int32 {
	text = t.normalize(text)
	for len(text) > 0 {
		n := t.split(text)
		dst = t.appendWord(dst, text[:n])
		text = text[n:]
	}
	return dst
}

func (t *Tokenizer) appendWord(dst []int32, word string) []int32 {
	if len(word) == 1 {
		return append(dst, t.byteID[word[0]])
	}
	if len(word) <= maxCachedWord {
		t.mu.RLock()
		ids, ok := t.cache[word]
		t.mu.RUnlock()
		if ok {
			return append(dst, ids...)
		}
	}
	if t.ignoreMerges {
		if id, ok := t.whole[word]; ok {
			return append(dst, id)
		}
	}
	start := len(dst)
	for i := range len(word) {
		dst = append(dst, t.byteID[word[i]])
	}
	dst = dst[:start+len(t.merge(dst[start:]))]
	if len(word) <= maxCachedWord {
		ids := append([]int32(nil), dst[start:]...)
		t.mu.Lock()
		if len(t.cache) >= maxCached {
			t.cache = make(map[string][]int32)
		}
		t.cache[string([]byte(word))] = ids
		t.mu.Unlock()
	}
	return dst
}

// merge applies the merges to one word in place, lowest rank first, and returns the shortened slice. Long words go
// through a heap so that hostile input cannot make it quadratic.
func (t *Tokenizer) merge(ids []int32) []int32 {
	if len(ids) > 256 {
		return t.mergeLong(ids)
	}
	for len(ids) > 1 {
		best, at := merged{rank: -1}, -1
		for i := 0; i+1 < len(ids); i++ {
			if m, ok := t.rank[pair{ids[i], ids[i+1]}]; ok && (at < 0 || m.rank < best.rank) {
				best, at = m, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = best.id
		ids = append(ids[:at+1], ids[at+2:]...)
	}
	return ids
}
