package cell

// Bounds of a search: how often a process is looked for that gets another parent
// meanwhile, how many are between one and the init, and how many are known at a
// time.
const (
	maxMoves   = 3
	maxParents = 256
	maxKnown   = 1 << 14
)

// family knows the processes that descend from one.
type family struct {
	of    int            // its number; it lives as long as this process
	known map[int]uint64 // when they began, by number
}

// find returns a process, none if there is none, and whether it is of the family.
func (f *family) find(n int) (p proc, is bool) {
	for range maxMoves {
		if p, _ = look(n); p.PID == 0 || f.has(p) {
			return p, p.PID != 0
		}
	}
	return p, false
}

// has reports whether a process descends from it. What once did always does,
// because orphans become its children: so each is searched for once.
func (f *family) has(p proc) bool {
	var line []proc
	for len(line) < maxParents {
		line = append(line, p)
		if began, is := f.known[p.PID]; p.Parent == f.of || is && began == p.Start {
			if len(f.known) > maxKnown {
				clear(f.known)
			}
			for _, p := range line {
				f.known[p.PID] = p.Start
			}
			return true
		}
		parent, ok := look(p.Parent)
		if same, still := look(p.PID); !ok || !still || same.Parent != p.Parent || same.Start != p.Start {
			return false // the parent has ended, and its number may be another's
		}
		p = parent
	}
	return false
}
