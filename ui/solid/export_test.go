package solid

// Triangles is how many of a scene are drawn.
func (s *Scene) Triangles() int { return len(s.tris) }
