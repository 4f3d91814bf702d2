package mesh

// Welded is the surface with one vertex in the place of those at the two ends of
// each edge without length. Triangles that this folds to lines are gone, and so
// are two that come to lie back to back. What was closed stays closed. Vertices
// that are equal without an edge between them stay apart: there solids touch.
// It is m itself where all edges have a length, and where four triangles would
// come to share an edge, which no solid has.
func (m *Mesh) Welded() *Mesh {
	joined := make([]uint32, len(m.Vertices))
	for v := range joined {
		joined[v] = uint32(v)
	}
	first := func(v uint32) uint32 {
		for joined[v] != v {
			joined[v] = joined[joined[v]]
			v = joined[v]
		}
		return v
	}
	whole := true
	for _, t := range m.Triangles {
		for i, v := range t {
			if to := t[(i+1)%3]; m.Vertices[v] == m.Vertices[to] {
				a, b := first(v), first(to)
				joined[max(a, b)] = min(a, b)
				whole = false
			}
		}
	}
	if whole {
		return m
	}
	out := &Mesh{}
	number := make([]uint32, len(m.Vertices))
	for v, at := range m.Vertices {
		if f := first(uint32(v)); f != uint32(v) {
			number[v] = number[f]
			continue
		}
		number[v] = uint32(len(out.Vertices))
		out.Vertices = append(out.Vertices, at)
	}
	triangles := make([][3]uint32, len(m.Triangles))
	left := make([]bool, len(m.Triangles))
	at := map[[3]uint32]int{} // what is left
	for i, t := range m.Triangles {
		t = fromLeast([3]uint32{number[t[0]], number[t[1]], number[t[2]]})
		triangles[i] = t
		if t[0] == t[1] || t[1] == t[2] || t[2] == t[0] {
			continue
		}
		back := [3]uint32{t[0], t[2], t[1]}
		if other, ok := at[back]; ok {
			left[other] = false
			delete(at, back)
			continue
		}
		left[i], at[t] = true, i
	}
	used := map[Edge]bool{}
	for i, t := range triangles {
		if !left[i] {
			continue
		}
		for j, from := range t {
			e := Edge{from, t[(j+1)%3]}
			if used[e] {
				return m
			}
			used[e] = true
		}
		out.Triangles = append(out.Triangles, t)
		if len(m.Faces) > 0 {
			out.Faces = append(out.Faces, m.Faces[i])
		}
	}
	return out
}

// fromLeast begins a triangle at its least vertex.
func fromLeast(t [3]uint32) [3]uint32 {
	for t[0] != min(t[0], t[1], t[2]) {
		t = [3]uint32{t[1], t[2], t[0]}
	}
	return t
}
