package chat

// maxJSONDepth bounds nesting while decoding under a grammar; the state then has a fixed size and is copied freely.
const maxJSONDepth = 16

// jsonState recognises the beginnings of JSON values byte by byte. The zero value stands before a value.
//
// White space is not let through, since compact JSON needs none, and strings are plain: of the escapes only the
// two-character ones are.
type jsonState struct {
	mode  jsonMode
	after jsonMode // of strings: what follows the closing quote
	lit   string   // rest of true, false or null
	depth int
	stack [maxJSONDepth]byte // '{' or '['
}

type jsonMode byte

const (
	jsonValue     jsonMode = iota // before a value
	jsonFirstKey                  // after {
	jsonKey                       // after , in an object
	jsonColon                     // after a key
	jsonFirstItem                 // after [
	jsonDone                      // after a value
	jsonText                      // in a string
	jsonEscape                    // after a backslash
	jsonLiteral                   // in true, false, null
	jsonMinus                     // after -
	jsonZero                      // after a leading 0
	jsonInt                       // in the integer part
	jsonDot                       // after .
	jsonFraction                  // in the fraction
	jsonExp                       // after e
	jsonExpSign                   // after the sign of the exponent
	jsonExpDigits                 // in the exponent
)

// complete says whether what was fed is a whole value.
func (s *jsonState) complete() bool {
	if s.depth > 0 {
		return false
	}
	return s.mode == jsonDone || s.numberEnds()
}

func (s *jsonState) numberEnds() bool {
	switch s.mode {
	case jsonZero, jsonInt, jsonFraction, jsonExpDigits:
		return true
	}
	return false
}

// feed takes bytes and is false as soon as no JSON value begins like this; the state is then worthless.
func (s *jsonState) feed(text []byte) bool {
	for _, b := range text {
		if !s.byte(b) {
			return false
		}
	}
	return true
}

func (s *jsonState) byte(b byte) bool {
	digit := b >= '0' && b <= '9'
	switch s.mode {
	case jsonText:
		switch {
		case b == '"':
			s.mode = s.after
		case b == '\\':
			s.mode = jsonEscape
		default:
			return b >= 0x20
		}
		return true
	case jsonEscape:
		s.mode = jsonText
		switch b {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return true
		}
		return false
	case jsonLiteral:
		if b != s.lit[0] {
			return false
		}
		if s.lit = s.lit[1:]; s.lit == "" {
			s.mode = jsonDone
		}
		return true
	case jsonMinus:
		return s.number(b, digit)
	case jsonDot:
		s.mode = jsonFraction
		return digit
	case jsonExp:
		s.mode = jsonExpDigits
		if b == '+' || b == '-' {
			s.mode = jsonExpSign
			return true
		}
		return digit
	case jsonExpSign:
		s.mode = jsonExpDigits
		return digit
	case jsonInt, jsonFraction, jsonExpDigits:
		if digit {
			return true
		}
		return s.afterNumber(b)
	case jsonZero:
		return s.afterNumber(b)
	case jsonColon:
		s.mode = jsonValue
		return b == ':'
	case jsonFirstKey, jsonKey:
		if b == '}' && s.mode == jsonFirstKey {
			return s.pop('{')
		}
		s.mode, s.after = jsonText, jsonColon
		return b == '"'
	case jsonFirstItem:
		if b == ']' {
			return s.pop('[')
		}
		return s.value(b, digit)
	case jsonDone:
		return s.afterValue(b)
	}
	return s.value(b, digit)
}

func (s *jsonState) value(b byte, digit bool) bool {
	switch b {
	case '"':
		s.mode, s.after = jsonText, jsonDone
		return true
	case '{':
		return s.push(b, jsonFirstKey)
	case '[':
		return s.push(b, jsonFirstItem)
	case 't':
		s.mode, s.lit = jsonLiteral, "rue"
		return true
	case 'f':
		s.mode, s.lit = jsonLiteral, "alse"
		return true
	case 'n':
		s.mode, s.lit = jsonLiteral, "ull"
		return true
	case '-':
		s.mode = jsonMinus
		return true
	}
	return s.number(b, digit)
}

func (s *jsonState) number(b byte, digit bool) bool {
	s.mode = jsonInt
	if b == '0' {
		s.mode = jsonZero
	}
	return digit
}

func (s *jsonState) afterNumber(b byte) bool {
	switch {
	case b == '.' && (s.mode == jsonInt || s.mode == jsonZero):
		s.mode = jsonDot
		return true
	case (b == 'e' || b == 'E') && s.mode != jsonExpDigits:
		s.mode = jsonExp
		return true
	}
	s.mode = jsonDone
	return s.afterValue(b)
}

func (s *jsonState) afterValue(b byte) bool {
	if s.depth == 0 {
		return false
	}
	in := s.stack[s.depth-1]
	switch {
	case b == ',' && in == '{':
		s.mode = jsonKey
		return true
	case b == ',':
		s.mode = jsonValue
		return true
	case b == '}':
		return s.pop('{')
	case b == ']':
		return s.pop('[')
	}
	return false
}

func (s *jsonState) push(b byte, mode jsonMode) bool {
	if s.depth == maxJSONDepth {
		return false
	}
	s.stack[s.depth] = b
	s.depth++
	s.mode = mode
	return true
}

func (s *jsonState) pop(open byte) bool {
	if s.depth == 0 || s.stack[s.depth-1] != open {
		return false
	}
	s.depth--
	s.mode = jsonDone
	return true
}
