package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"agentrl/internal/errs"
	"agentrl/internal/trajectory"
)

// maxPayload bounds what one stored trajectory may unpack to, in bytes.
const maxPayload = 1 << 30

// conversation is the part of a trajectory that the messages table holds, as JSON under zstd.
type conversation struct {
	Tools []trajectory.Tool    `json:"tools,omitempty"`
	Open  []trajectory.Message `json:"open"`
	Turns []trajectory.Turn    `json:"turns"`
}

// packMessages refuses rewards that are not finite; metrics that are not are left out, as an environment's odd figure
// must not cost the episode.
func (s *Store) packMessages(t *trajectory.Trajectory) ([]byte, error) {
	turns := slices.Clone(t.Turns)
	for i := range turns {
		if !finite(turns[i].Reward) {
			return nil, errs.New(errs.Invalid, "trajectory %s, turn %d: the reward %g is not a finite number", t.ID, i, turns[i].Reward)
		}
		for _, v := range turns[i].Metrics {
			if !finite(v) {
				turns[i].Metrics = maps.Clone(turns[i].Metrics)
				maps.DeleteFunc(turns[i].Metrics, func(_ string, v float64) bool { return !finite(v) })
				break
			}
		}
	}
	b, err := json.Marshal(conversation{t.Tools, t.Open, turns})
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "trajectory %s cannot be stored", t.ID)
	}
	return s.enc.EncodeAll(b, nil), nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (s *Store) unpackMessages(data []byte, t *trajectory.Trajectory) error {
	b, err := s.dec.DecodeAll(data, nil)
	if err != nil {
		return fail("unpack messages", err)
	}
	var c conversation
	if err := json.Unmarshal(b, &c); err != nil {
		return fail("unpack messages", err)
	}
	t.Tools, t.Open, t.Turns = c.Tools, c.Open, c.Turns
	return nil
}

// packTokens writes, under zstd: version 1, n tokens, n log-probs, n or 0 trainer log-probs; little-endian 32 bit each.
func (s *Store) packTokens(t *trajectory.Trajectory) ([]byte, error) {
	n := len(t.Tokens)
	if (len(t.Logprobs) != n && len(t.Logprobs) != 0) || (len(t.TrainLogprobs) != n && len(t.TrainLogprobs) != 0) {
		return nil, errs.New(errs.Invalid, "trajectory %s has %d tokens, %d log-probs and %d trainer log-probs; they must be as many, or none",
			t.ID, n, len(t.Logprobs), len(t.TrainLogprobs))
	}
	b := make([]byte, 0, 16+12*n)
	b = append(b, 1)
	for _, k := range []int{n, len(t.Logprobs), len(t.TrainLogprobs)} {
		b = binary.AppendUvarint(b, uint64(k))
	}
	for _, v := range t.Tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	for _, list := range [][]float32{t.Logprobs, t.TrainLogprobs} {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return s.enc.EncodeAll(b, nil), nil
}

func (s *Store) unpackTokens(data []byte) (tokens []int32, logprobs, train []float32, err error) {
	b, err := s.dec.DecodeAll(data, nil)
	if err != nil {
		return nil, nil, nil, fail("unpack tokens", err)
	}
	tokens, logprobs, train, err = decodeTokens(b)
	return tokens, logprobs, train, fail("unpack tokens", err)
}

func decodeTokens(b []byte) (tokens []int32, logprobs, train []float32, err error) {
	if len(b) == 0 || b[0] != 1 {
		return nil, nil, nil, errors.New("not a token blob of version 1")
	}
	b = b[1:]
	var n [3]int
	sum := uint64(0)
	for i := range n {
		v, k := binary.Uvarint(b)
		if k <= 0 || v > uint64(len(b)) {
			return nil, nil, nil, errors.New("a token blob with a damaged head")
		}
		n[i], b = int(v), b[k:]
		sum += v
	}
	if uint64(len(b)) != 4*sum {
		return nil, nil, nil, fmt.Errorf("a token blob of %d bytes instead of %d", len(b), 4*sum)
	}
	next := func() uint32 {
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	tokens = make([]int32, n[0])
	for i := range tokens {
		tokens[i] = int32(next())
	}
	floats := func(k int) []float32 {
		if k == 0 {
			return nil
		}
		out := make([]float32, k)
		for i := range out {
			out[i] = math.Float32frombits(next())
		}
		return out
	}
	logprobs = floats(n[1])
	train = floats(n[2])
	return tokens, logprobs, train, nil
}
