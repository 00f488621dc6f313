package alfworld

// problem is the parsed description of one game. Object ids are lower case.
type problem struct {
	objects []typed
	init    []atom
	goal    sexpr
}

// atom is a ground fact in names.
type atom struct {
	pred string
	args []string
	line int
}

func parseProblem(text string) (*problem, error) {
	const what = "pddl_problem"
	root, err := readSexpr(what, text)
	if err != nil {
		return nil, err
	}
	if root.head() != "define" {
		return nil, bad("%s: it must be of the form (define (problem NAME) ...)", what)
	}
	p := &problem{}
	for i := range root.list[1:] {
		part := &root.list[1+i]
		switch part.head() {
		case "problem", ":domain", ":metric", ":requirements":
		case ":objects":
			list, err := typedList(what, part.list[1:])
			if err != nil {
				return nil, err
			}
			p.objects = append(p.objects, list...)
		case ":init":
			if err := p.addInit(part); err != nil {
				return nil, err
			}
		case ":goal":
			if len(part.list) != 2 {
				return nil, bad("%s, line %d: :goal takes one condition", what, part.line)
			}
			p.goal = part.list[1]
		default:
			return nil, bad("%s, line %d: %q is not supported; allowed are :domain, :objects, :init, :goal and :metric", what, part.line, part.head())
		}
	}
	if !p.goal.isList() {
		return nil, bad("%s: :goal is missing", what)
	}
	return p, nil
}

func (p *problem) addInit(part *sexpr) error {
	for i := range part.list[1:] {
		e := &part.list[1+i]
		if e.head() == "" {
			return bad("pddl_problem, line %d: a fact must be of the form (predicate object ...)", e.line)
		}
		if e.head() == "=" {
			continue // the start value of a cost
		}
		f := atom{pred: e.head(), line: e.line, args: make([]string, 0, len(e.list)-1)}
		for j := range e.list[1:] {
			a := &e.list[1+j]
			if a.isList() {
				return bad("pddl_problem, line %d: an object is needed where a parenthesis stands", a.line)
			}
			f.args = append(f.args, a.atom)
		}
		p.init = append(p.init, f)
	}
	return nil
}
