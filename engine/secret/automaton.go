package secret

// automaton finds many patterns in one pass (Aho and Corasick). Its states are
// the beginnings of patterns, kept as lists since nearly all have one way on.
type automaton struct {
	nodes []node
	root  [256]int32 // ways on from the root, state 0
	pairs [1024]uint64
}

// node is the state in which a beginning has been read.
type node struct {
	child, next int32 // the first way on; the next one of its parent
	fail        int32 // the longest end of it that is a beginning too
	depth       int32 // bytes
	match       int32 // 1 + the pattern that it ends with, the longest; 0 for none
	label       byte  // its last byte
	wraps       bool  // a line may break after it
}

// wrapAt is the least that a line of broken text has. Shorter beginnings are
// too common at the ends of lines, which would be held back for them.
const wrapAt = 16

func newAutomaton(all []pattern) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for i, p := range all {
		a.add(p, int32(i+1))
	}
	a.link()
	return a
}

func (a *automaton) add(p pattern, match int32) {
	at := int32(0)
	for i := range len(p.text) {
		to := a.child(at, p.text[i])
		if to == 0 {
			to = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{next: a.nodes[at].child, depth: int32(i + 1), label: p.text[i]})
			a.nodes[at].child = to
			if at == 0 {
				a.root[p.text[i]] = to
			}
		}
		at = to
		a.nodes[at].wraps = a.nodes[at].wraps || p.wraps && i+1 >= wrapAt
	}
	a.nodes[at].match = match
	pair := uint(p.text[0]) | uint(p.text[1])<<8
	a.pairs[pair>>6] |= 1 << (pair & 63)
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.root[b]
	}
	to := a.nodes[at].child
	for to != 0 && a.nodes[to].label != b {
		to = a.nodes[to].next
	}
	return to
}

// link finds the ends that are beginnings, shorter states first.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for to := a.nodes[0].child; to != 0; to = a.nodes[to].next {
		queue = append(queue, to)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		if fail := a.nodes[at].fail; a.nodes[at].match == 0 {
			a.nodes[at].match = a.nodes[fail].match
		}
		for to := a.nodes[at].child; to != 0; to = a.nodes[to].next {
			a.nodes[to].fail = a.step(a.nodes[at].fail, a.nodes[to].label)
			queue = append(queue, to)
		}
	}
}

// step is the state after one more byte.
func (a *automaton) step(at int32, b byte) int32 {
	for {
		if to := a.child(at, b); to != 0 || at == 0 {
			return to
		}
		at = a.nodes[at].fail
	}
}

// skip passes over what can begin no pattern, from the root.
func (a *automaton) skip(data []byte, i int) int {
	for ; i+1 < len(data); i++ {
		pair := uint(data[i]) | uint(data[i+1])<<8
		if a.pairs[pair>>6]&(1<<(pair&63)) != 0 {
			return i
		}
	}
	if i < len(data) && a.root[data[i]] == 0 {
		i++
	}
	return i
}
