package format

import "swarmdeck/engine/cad/mesh"

// Count is the number of flat faces of a closed surface, of the straight edges
// between them and of their corners, as a STEP file would have them.
func Count(m *mesh.Mesh) (faceCount, edges, vertices int, err error) {
	all := make([]int, len(m.Triangles))
	for i := range all {
		all[i] = i
	}
	found, err := faces(m, all)
	if err != nil {
		return 0, 0, 0, err
	}
	corners := make(map[uint32]struct{})
	for _, f := range found {
		for _, l := range f.loops {
			edges += len(l)
			for _, v := range l {
				corners[v] = struct{}{}
			}
		}
	}
	return len(found), edges / 2, len(corners), nil
}
