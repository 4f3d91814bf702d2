package model

// needs gathers the shapes and files behind solids that a workspace lacks,
// inputs before what is made of them.
type needs struct {
	w      *Workspace
	taken  map[string]struct{}
	shapes []Shape
	blobs  []Blob
}

func newNeeds(w *Workspace) *needs { return &needs{w: w, taken: map[string]struct{}{}} }

// add takes what an entity of another workspace needs.
func (n *needs) add(from *Workspace, e Entity) {
	if e.Type == Solid {
		n.shape(from, e.Shape)
	}
}

func (n *needs) shape(from *Workspace, hash string) {
	if _, have := n.w.shapes[hash]; have || !n.first(hash) {
		return
	}
	s := from.shapes[hash]
	for _, input := range s.Inputs {
		n.shape(from, input)
	}
	if s.Blob != "" && n.w.blobs[s.Blob] == nil && n.first(s.Blob) {
		n.blobs = append(n.blobs, Blob{Hash: s.Blob, Data: from.blobs[s.Blob]})
	}
	n.shapes = append(n.shapes, s)
}

func (n *needs) first(hash string) bool {
	if _, ok := n.taken[hash]; ok {
		return false
	}
	n.taken[hash] = struct{}{}
	return true
}
