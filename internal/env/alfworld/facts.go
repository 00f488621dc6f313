package alfworld

import "slices"

// entity is the rank of an object id in ascending order; comparing entities compares ids.
type entity uint16

const nobody = entity(0xFFFF)

// fact packs the arguments of one predicate: the first argument is most significant, so that sorted facts are in the
// order of their argument ids.
type fact uint64

func pack(args []entity) fact {
	var f fact
	for i, a := range args {
		f |= fact(a) << (32 - 16*i)
	}
	return f
}

func (f fact) arg(i int) entity { return entity(f >> (32 - 16*i)) }

// swap exchanges the first two arguments, for the index by second argument.
func (f fact) swap() fact {
	return f&0xFFFF | (f>>16&0xFFFF)<<32 | (f>>32&0xFFFF)<<16
}

// facts is a set of facts: one sorted slice per predicate. Slices are never changed in place, so a copy of the outer
// slice is an independent state.
type facts [][]fact

func (s facts) has(pred int, f fact) bool {
	_, ok := slices.BinarySearch(s[pred], f)
	return ok
}

// withFirst returns the facts whose first argument is e.
func withFirst(all []fact, e entity) []fact {
	lo, _ := slices.BinarySearch(all, fact(e)<<32)
	hi := lo
	if len(all)-lo > 16 {
		n, _ := slices.BinarySearch(all[lo:], (fact(e)+1)<<32)
		return all[lo : lo+n]
	}
	for hi < len(all) && all[hi].arg(0) == e {
		hi++
	}
	return all[lo:hi]
}

// add reports whether the fact was new.
func (s facts) add(pred int, f fact) bool {
	i, ok := slices.BinarySearch(s[pred], f)
	if ok {
		return false
	}
	next := make([]fact, len(s[pred])+1)
	copy(next, s[pred][:i])
	next[i] = f
	copy(next[i+1:], s[pred][i:])
	s[pred] = next
	return true
}

// remove reports whether the fact was there.
func (s facts) remove(pred int, f fact) bool {
	i, ok := slices.BinarySearch(s[pred], f)
	if !ok {
		return false
	}
	next := make([]fact, len(s[pred])-1)
	copy(next, s[pred][:i])
	copy(next[i:], s[pred][i+1:])
	s[pred] = next
	return true
}
