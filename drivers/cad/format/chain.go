package format

import "swarmdeck/engine/cad/mesh"

// chains joins edges to lines as long as no third edge meets them. One that
// comes back to where it began has its first vertex last too.
func chains(edges []mesh.Edge) [][]uint32 {
	at := make(map[uint32][]int, len(edges))
	for i, e := range edges {
		at[e.From] = append(at[e.From], i)
		at[e.To] = append(at[e.To], i)
	}
	used := make([]bool, len(edges))
	follow := func(i int, from uint32) []uint32 {
		line := []uint32{from}
		for i >= 0 {
			used[i] = true
			from = edges[i].From + edges[i].To - from
			line = append(line, from)
			i = -1
			if next := at[from]; len(next) == 2 {
				for _, n := range next {
					if !used[n] {
						i = n
					}
				}
			}
		}
		return line
	}
	var out [][]uint32
	for i, e := range edges { // from their ends on
		for _, v := range []uint32{e.From, e.To} {
			if !used[i] && len(at[v]) != 2 {
				out = append(out, follow(i, v))
			}
		}
	}
	for i, e := range edges { // what is left has none
		if !used[i] {
			out = append(out, follow(i, e.From))
		}
	}
	return out
}
